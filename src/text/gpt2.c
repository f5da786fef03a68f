#include "text/gpt2.h"

#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "text/gpt2_split.h"
#include "text/pair_table.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

typedef struct token {
  const char *text;     // as in the file, zero-terminated
  uint32_t at, length;  // its bytes
  bool whole;           // the merges turn its bytes into this token, so a piece of text can be looked up directly
} token;

// The special tokens of RoBERTa; GPT-2 has only the end, which is also the beginning.
typedef enum special { BEGIN, END, MASK, PAD, UNKNOWN, SPECIALS } special;
static const char *const NAMES[SPECIALS] = {"<s>", "</s>", "<mask>", "<pad>", "<unk>"};

typedef struct gpt2 {
  token *tokens;
  int32_t count;
  int32_t special[SPECIALS];  // -1: there is none
  tarn__gpt2_sort sort;
  char *bytes;        // of all tokens, one after the other
  tarn__index index;  // by bytes
  int32_t of_byte[256];
  tarn__pair_table merges;
  tarn__arena arena;
} gpt2;

static void close_gpt2(void *self) {
  gpt2 *g = self;
  tarn__index_close(&g->index);
  tarn__pair_table_close(&g->merges);
  tarn__arena_close(&g->arena);
  tarn__free(g);
}

static bool begins_with(const void *bytes, size_t size, const char *magic) {
  return size >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

tarn__gpt2_sort tarn__gpt2_sort_of(const void *bytes, size_t size) {
  if (begins_with(bytes, size, TARN__GPT2_MAGIC)) return TARN__GPT2_OWN;
  return begins_with(bytes, size, TARN__ROBERTA_MAGIC) ? TARN__GPT2_ROBERTA : TARN__GPT2_NONE;
}

static bool detect(const void *bytes, size_t size) { return tarn__gpt2_sort_of(bytes, size) != TARN__GPT2_NONE; }

static bool is_special(const gpt2 *g, int32_t id) {
  for (int i = 0; i < SPECIALS; i++)
    if (g->special[i] == id) return true;
  return false;
}

// Whether a byte is written as the character of its own number: the printable ones of Latin-1.
static bool is_plain(int32_t code) {
  return (code >= '!' && code <= '~') || (code >= 0xA1 && code <= 0xFF && code != 0xAD);
}

// byte_of[c] is the byte that character c stands for, or -1.
enum { ALPHABET = 256 + 68 };
static void fill_alphabet(int16_t byte_of[ALPHABET]) {
  int others = 0;
  for (int i = 0; i < ALPHABET; i++) byte_of[i] = -1;
  for (int b = 0; b < 256; b++) byte_of[is_plain(b) ? b : 256 + others++] = (int16_t)b;
}

// The id of these bytes with this hash, or -1.
static int32_t find(const gpt2 *g, const char *bytes, size_t length, uint64_t hash) {
  size_t step = 0;
  int64_t id;
  while ((id = tarn__index_next(&g->index, hash, &step)) >= 0) {
    const token *t = &g->tokens[id];
    if (t->length == length && memcmp(g->bytes + t->at, bytes, length) == 0) break;
  }
  return (int32_t)id;
}

static int32_t find_token(const gpt2 *g, const char *bytes, size_t length) {
  return find(g, bytes, length, tarn__hash64(bytes, length, 0));
}

// Writes the bytes of a token in the file and returns their number, 0 if it is no token.
static size_t read_token(char *out, const char *text, size_t length, const int16_t byte_of[ALPHABET]) {
  size_t used = 0;
  for (size_t i = 0; i < length;) {
    int32_t code;
    i += tarn__utf8_decode(&code, text + i, length - i);
    if (code < 0 || code >= ALPHABET || byte_of[code] < 0) return 0;
    out[used++] = (char)byte_of[code];
  }
  return used;
}

static tarn_status add_token(gpt2 *g, size_t *used, const char *line, size_t length, const int16_t byte_of[ALPHABET]) {
  token *t = &g->tokens[g->count];
  t->at = (uint32_t)*used;
  t->length = (uint32_t)read_token(g->bytes + *used, line, length, byte_of);
  TARN_REQUIRE(t->length, DATA, "damaged vocabulary: token %d (\"%.*s\") is not of the 256 characters for bytes",
               g->count, length > 80 ? 80 : (int)length, line);
  const char *bytes = g->bytes + *used;
  uint64_t hash = tarn__hash64(bytes, t->length, 0);
  int32_t older = find(g, bytes, t->length, hash);
  TARN_REQUIRE(older < 0, DATA, "damaged vocabulary: tokens %d and %d are the same", older, g->count);
  void *text;
  TARN_TRY(tarn__arena_alloc(&g->arena, &text, length + 1, 1));
  memcpy(text, line, length);
  t->text = text;
  *used += t->length;
  g->count++;
  return tarn__index_add(&g->index, hash);
}

static tarn_status find_specials(gpt2 *g) {
  const bool own = g->sort == TARN__GPT2_OWN;
  for (int i = 0; i < SPECIALS; i++) {
    const char *name = own ? TARN__GPT2_END : NAMES[i];
    g->special[i] = own && i > END ? -1 : find_token(g, name, strlen(name));
    TARN_REQUIRE(g->special[i] >= 0 || i >= PAD || (own && i > END), DATA, "damaged vocabulary: it has no token %s",
                 name);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_tokens(gpt2 *g, tarn__vocab_reader *reader, const int16_t byte_of[ALPHABET]) {
  int64_t size;
  void *memory;
  size_t used = 0;
  TARN_TRY(tarn__vocab_number(reader, &size, "size ", TARN__GPT2_MOST));
  TARN_REQUIRE(reader->end - reader->at <= INT32_MAX && reader->end - reader->at >= 2 * size, DATA,
               "damaged vocabulary: %lld tokens do not fit into it", (long long)size);
  TARN_TRY(tarn__arena_alloc(&g->arena, &memory, (size_t)size + 1, sizeof *g->tokens));
  g->tokens = memory;
  TARN_TRY(tarn__arena_alloc(&g->arena, &memory, (size_t)(reader->end - reader->at) + 1, 1));
  g->bytes = memory;
  while (g->count < size) {
    const char *line;
    size_t length;
    TARN_REQUIRE(tarn__vocab_line(reader, &line, &length), DATA, "damaged vocabulary: it ends after %d of %lld tokens",
                 g->count, (long long)size);
    TARN_TRY(add_token(g, &used, line, length, byte_of));
  }
  for (int b = 0; b < 256; b++) {
    char byte = (char)b;
    g->of_byte[b] = find_token(g, &byte, 1);
    TARN_REQUIRE(g->of_byte[b] >= 0, DATA, "damaged vocabulary: byte 0x%02X has no token", (unsigned)b);
  }
  return find_specials(g);
}

// One side of a merge: its id and its bytes.
static tarn_status read_side(const gpt2 *g, int32_t *id, char *room, const char *text, size_t length, int64_t number,
                             const int16_t byte_of[ALPHABET]) {
  size_t size = read_token(room, text, length, byte_of);
  *id = size ? find_token(g, room, size) : -1;
  TARN_REQUIRE(*id >= 0 && !is_special(g, *id), DATA,
               "damaged vocabulary: merge %lld is of \"%.*s\", which is no token", (long long)number,
               length > 80 ? 80 : (int)length, text);
  return TARN_STATUS_OK;
}

static tarn_status add_merge(gpt2 *g, tarn_vocab_text *room, const char *line, size_t length, int64_t number,
                             const int16_t byte_of[ALPHABET]) {
  const char *blank = memchr(line, ' ', length);
  TARN_REQUIRE(blank, DATA, "damaged vocabulary: merge %lld (\"%.*s\") has no blank between two tokens",
               (long long)number, length > 80 ? 80 : (int)length, line);
  tarn__merge merge;
  bool fresh;
  size_t left = (size_t)(blank - line);
  TARN_TRY(tarn__grow(&room->data, &room->capacity, length, 1));
  TARN_TRY(read_side(g, &merge.left, room->data, line, left, number, byte_of));
  TARN_TRY(read_side(g, &merge.right, room->data, blank + 1, length - left - 1, number, byte_of));
  const token *first = &g->tokens[merge.left];
  const token *second = &g->tokens[merge.right];
  memcpy(room->data, g->bytes + first->at, first->length);
  memcpy(room->data + first->length, g->bytes + second->at, second->length);
  merge.product = find_token(g, room->data, (size_t)first->length + second->length);
  TARN_REQUIRE(merge.product >= 0, DATA, "damaged vocabulary: merge %lld (\"%.*s\") makes no token", (long long)number,
               length > 80 ? 80 : (int)length, line);
  TARN_REQUIRE(!is_special(g, merge.product), DATA, "damaged vocabulary: merge %lld makes %s", (long long)number,
               g->tokens[merge.product].text);
  TARN_TRY(tarn__pair_table_add(&g->merges, &fresh, &merge));
  TARN_REQUIRE(fresh, DATA, "damaged vocabulary: merge %lld (\"%.*s\") is there twice", (long long)number,
               length > 80 ? 80 : (int)length, line);
  return TARN_STATUS_OK;
}

// *at is the number of the current merge.
static tarn_status read_merges(gpt2 *g, tarn__vocab_reader *reader, const int16_t byte_of[ALPHABET], int64_t *at) {
  int64_t count;
  tarn_vocab_text room = {0};
  tarn_status status = TARN_STATUS_OK;
  TARN_TRY(tarn__vocab_number(reader, &count, "merges ", TARN__GPT2_MOST));
  for (*at = 0; *at < count; ++*at) {
    const char *line;
    size_t length;
    if (tarn__vocab_line(reader, &line, &length))
      status = add_merge(g, &room, line, length, *at, byte_of);
    else
      status = tarn__fail(TARN_STATUS_DATA, "damaged vocabulary: it ends after %lld of %lld merges", (long long)*at,
                          (long long)count);
    if (status != TARN_STATUS_OK) break;
  }
  tarn_vocab_text_close(&room);
  return status;
}

// Appends the tokens of one piece of text.
static tarn_status encode_piece(const gpt2 *g, tarn_vocab_ids *ids, const char *piece, size_t length) {
  int32_t *out = ids->data + ids->count;
  for (size_t i = 0; i < length; i++) out[i] = g->of_byte[(unsigned char)piece[i]];
  TARN_TRY(tarn__pair_table_apply(&g->merges, out, &length));
  ids->count += length;
  return TARN_STATUS_OK;
}

static tarn_status find_whole_tokens(gpt2 *g) {
  tarn_vocab_ids ids = {0};
  tarn_status status = TARN_STATUS_OK;
  for (int32_t i = 0; i < g->count && status == TARN_STATUS_OK; i++) {
    token *t = &g->tokens[i];
    ids.count = 0;
    status = tarn__grow(&ids.data, &ids.capacity, t->length, sizeof *ids.data);
    if (status == TARN_STATUS_OK) status = encode_piece(g, &ids, g->bytes + t->at, t->length);
    t->whole = status == TARN_STATUS_OK && ids.count == 1 && ids.data[0] == i;
  }
  tarn_vocab_ids_close(&ids);
  return status;
}

static tarn_status parse(gpt2 *g, const char *bytes, size_t size, int64_t *merge) {
  *merge = -1;
  tarn__vocab_reader reader = {bytes, bytes + size};
  int16_t byte_of[ALPHABET];
  fill_alphabet(byte_of);
  int64_t version;
  g->sort = tarn__gpt2_sort_of(bytes, size);
  TARN_TRY(
      tarn__vocab_head(&reader, &version, g->sort == TARN__GPT2_ROBERTA ? TARN__ROBERTA_MAGIC : TARN__GPT2_MAGIC, 1));
  TARN_TRY(read_tokens(g, &reader, byte_of));
  TARN_TRY(read_merges(g, &reader, byte_of, merge));
  *merge = -1;
  return tarn__vocab_finish(&reader);
}

tarn_status tarn__gpt2_check(int64_t *merge, const char *bytes, size_t size) {
  void *memory;
  *merge = -1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(gpt2)));
  tarn_status status = parse(memory, bytes, size, merge);
  close_gpt2(memory);
  return status;
}

static tarn_status open_gpt2(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(gpt2)));
  gpt2 *g = *self;
  int64_t merge;
  tarn_status status = parse(g, bytes, size, &merge);
  if (status == TARN_STATUS_OK) status = find_whole_tokens(g);
  *facts = (tarn__vocab_facts){.size = g->count,
                               .unk = g->special[UNKNOWN],
                               .bos = g->special[BEGIN],
                               .eos = g->special[END],
                               .pad = g->special[PAD],
                               .special = TARN__VOCAB_NO_SPECIAL};
  if (g->sort == TARN__GPT2_ROBERTA) {
    facts->type = "RoBERTa";
    facts->special[TARN_SPECIAL_CLS] = g->special[BEGIN];
    facts->special[TARN_SPECIAL_SEP] = g->special[END];
    facts->special[TARN_SPECIAL_MASK] = g->special[MASK];
  }
  if (status != TARN_STATUS_OK) close_gpt2(g);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const gpt2 *)self)->tokens[id].text; }

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const gpt2 *g = self;
  const char *end = text + length;
  ids->count = 0;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, length, sizeof *ids->data));
  for (const char *at = text; at < end;) {
    const char *next = tarn__gpt2_split(at, end);
    size_t size = (size_t)(next - at);
    int32_t id = find_token(g, at, size);
    if (id >= 0 && g->tokens[id].whole)
      ids->data[ids->count++] = id;
    else
      TARN_TRY(encode_piece(g, ids, at, size));
    at = next;
  }
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const gpt2 *g = self;
  text->length = 0;
  TARN_TRY(tarn__vocab_append(text, "", 0));
  for (size_t i = 0; i < count; i++) {
    const token *t = &g->tokens[ids[i]];
    if (!is_special(g, ids[i])) TARN_TRY(tarn__vocab_append(text, g->bytes + t->at, t->length));
  }
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  const gpt2 *g = self;
  const char first = g->bytes[g->tokens[id].at];
  return first == ' ' || (first >= '\t' && first <= '\r');
}

const tarn__vocab_kind tarn__gpt2_kind = {detect, open_gpt2, close_gpt2, piece, encode, decode, begins_word, "GPT-2"};

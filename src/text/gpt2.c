#include "text/gpt2.h"

#include <string.h>

#include "base/memory.h"
#include "text/byte_tokens.h"
#include "text/gpt2_split.h"

// The special tokens of RoBERTa; GPT-2 has only the end, which is also the beginning.
typedef enum special { BEGIN, END, MASK, PAD, UNKNOWN, SPECIALS } special;
static const char *const NAMES[SPECIALS] = {"<s>", "</s>", "<mask>", "<pad>", "<unk>"};

typedef struct gpt2 {
  tarn__byte_tokens all;
  int32_t special[SPECIALS];  // -1: there is none
  tarn__gpt2_sort sort;
  int32_t of_byte[256];
} gpt2;

static void close_gpt2(void *self) {
  gpt2 *g = self;
  tarn__byte_tokens_close(&g->all);
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

static tarn_status find_specials(gpt2 *g) {
  const bool own = g->sort == TARN__GPT2_OWN;
  for (int i = 0; i < SPECIALS; i++) {
    const char *name = own ? TARN__GPT2_END : NAMES[i];
    g->special[i] = own && i > END ? -1 : tarn__byte_tokens_find(&g->all, name, strlen(name));
    TARN_REQUIRE(g->special[i] >= 0 || i >= PAD || (own && i > END), DATA, "damaged vocabulary: it has no token %s",
                 name);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_tokens(gpt2 *g, tarn__vocab_reader *reader) {
  TARN_TRY(tarn__byte_tokens_read(&g->all, reader, false));
  for (int b = 0; b < 256; b++) {
    char byte = (char)b;
    g->of_byte[b] = tarn__byte_tokens_find(&g->all, &byte, 1);
    TARN_REQUIRE(g->of_byte[b] >= 0, DATA, "damaged vocabulary: byte 0x%02X has no token", (unsigned)b);
  }
  return find_specials(g);
}

// Appends the tokens of one piece of text.
static tarn_status encode_piece(const gpt2 *g, tarn_vocab_ids *ids, const char *piece, size_t length) {
  int32_t *out = ids->data + ids->count;
  for (size_t i = 0; i < length; i++) out[i] = g->of_byte[(unsigned char)piece[i]];
  TARN_TRY(tarn__pair_table_apply(&g->all.merges, out, &length));
  ids->count += length;
  return TARN_STATUS_OK;
}

static tarn_status find_whole_tokens(gpt2 *g) {
  tarn_vocab_ids ids = {0};
  tarn_status status = TARN_STATUS_OK;
  for (int32_t i = 0; i < g->all.count && status == TARN_STATUS_OK; i++) {
    tarn__byte_token *t = &g->all.tokens[i];
    ids.count = 0;
    status = tarn__grow(&ids.data, &ids.capacity, t->length, sizeof *ids.data);
    if (status == TARN_STATUS_OK) status = encode_piece(g, &ids, g->all.bytes + t->at, t->length);
    t->whole = status == TARN_STATUS_OK && ids.count == 1 && ids.data[0] == i;
  }
  tarn_vocab_ids_close(&ids);
  return status;
}

static tarn_status parse(gpt2 *g, const char *bytes, size_t size, int64_t *merge) {
  *merge = -1;
  tarn__vocab_reader reader = {bytes, bytes + size};
  int64_t version;
  g->sort = tarn__gpt2_sort_of(bytes, size);
  TARN_TRY(
      tarn__vocab_head(&reader, &version, g->sort == TARN__GPT2_ROBERTA ? TARN__ROBERTA_MAGIC : TARN__GPT2_MAGIC, 1));
  TARN_TRY(read_tokens(g, &reader));
  TARN_TRY(tarn__byte_tokens_read_merges(&g->all, &reader, g->special, SPECIALS, merge));
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
  *facts = (tarn__vocab_facts){.size = g->all.count,
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

static const char *piece(const void *self, int32_t id) { return ((const gpt2 *)self)->all.tokens[id].text; }

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const gpt2 *g = self;
  const char *end = text + length;
  ids->count = 0;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, length, sizeof *ids->data));
  for (const char *at = text; at < end;) {
    const char *next = tarn__gpt2_split(at, end);
    size_t size = (size_t)(next - at);
    int32_t id = tarn__byte_tokens_find(&g->all, at, size);
    if (id >= 0 && g->all.tokens[id].whole)
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
    const tarn__byte_token *t = &g->all.tokens[ids[i]];
    if (!is_special(g, ids[i])) TARN_TRY(tarn__vocab_append(text, g->all.bytes + t->at, t->length));
  }
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  const gpt2 *g = self;
  const char first = g->all.bytes[g->all.tokens[id].at];
  return first == ' ' || (first >= '\t' && first <= '\r');
}

const tarn__vocab_kind tarn__gpt2_kind = {detect, open_gpt2, close_gpt2, piece, encode, decode, begins_word, "GPT-2"};

#include "text/byte_tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "text/utf8.h"

const char tarn__token_marks[4] = {'=', '+', '*', '-'};

void tarn__byte_tokens_close(tarn__byte_tokens *tokens) {
  tarn__index_close(&tokens->index);
  tarn__pair_table_close(&tokens->merges);
  tarn__arena_close(&tokens->arena);
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

size_t tarn__byte_text(char *text, const char *bytes, size_t length) {
  int32_t code_of[256];
  int others = 0;
  size_t used = 0;
  for (int b = 0; b < 256; b++) code_of[b] = is_plain(b) ? b : 256 + others++;
  for (size_t i = 0; i < length; i++) used += tarn__utf8_encode(text + used, code_of[(unsigned char)bytes[i]]);
  text[used] = '\0';
  return used;
}

// The id of these bytes with this hash, or -1.
static int32_t find(const tarn__byte_tokens *t, const char *bytes, size_t length, tarn__token_sort sort,
                    uint64_t hash) {
  size_t step = 0;
  int64_t id;
  while ((id = tarn__index_next(&t->index, hash, &step)) >= 0) {
    const tarn__byte_token *token = &t->tokens[id];
    if (token->sort == sort && token->length == length && memcmp(t->bytes + token->at, bytes, length) == 0) break;
  }
  return (int32_t)id;
}

int32_t tarn__byte_tokens_find_sort(const tarn__byte_tokens *tokens, const char *bytes, size_t length,
                                    tarn__token_sort sort) {
  return find(tokens, bytes, length, sort, tarn__hash64(bytes, length, (uint64_t)sort));
}

int32_t tarn__byte_tokens_find(const tarn__byte_tokens *tokens, const char *bytes, size_t length) {
  return tarn__byte_tokens_find_sort(tokens, bytes, length, TARN__TOKEN_PLAIN);
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

// Numbers without a token have a name of their own, and no bytes.
static tarn_status name_token(tarn__byte_tokens *t, tarn__byte_token *token, const char *line, size_t length) {
  char name[40];
  void *text;
  if (token->sort == TARN__TOKEN_UNUSED) {
    length = (size_t)snprintf(name, sizeof name, "<unused %d>", t->count);
    line = name;
  }
  TARN_TRY(tarn__arena_alloc(&t->arena, &text, length + 1, 1));
  memcpy(text, line, length);
  token->text = text;
  return TARN_STATUS_OK;
}

static tarn_status add_token(tarn__byte_tokens *t, size_t *used, const char *line, size_t length, bool marks,
                             const int16_t byte_of[ALPHABET]) {
  tarn__byte_token *token = &t->tokens[t->count];
  if (marks) {
    const char *mark = length ? memchr(tarn__token_marks, *line, sizeof tarn__token_marks) : NULL;
    TARN_REQUIRE(mark, DATA, "damaged vocabulary: token %d has no mark of its sort", t->count);
    token->sort = (tarn__token_sort)(mark - tarn__token_marks);
    line++;
    length--;
  }
  const bool unused = token->sort == TARN__TOKEN_UNUSED;
  token->at = (uint32_t)*used;
  token->length = (uint32_t)read_token(t->bytes + *used, line, length, byte_of);
  TARN_REQUIRE(unused ? length == 0 : token->length > 0, DATA,
               "damaged vocabulary: token %d (\"%.*s\") is not of the 256 characters for bytes", t->count,
               length > 80 ? 80 : (int)length, line);
  const char *bytes = t->bytes + *used;
  const uint64_t hash = tarn__hash64(bytes, token->length, (uint64_t)token->sort);
  const int32_t older = unused ? -1 : find(t, bytes, token->length, token->sort, hash);
  TARN_REQUIRE(older < 0, DATA, "damaged vocabulary: tokens %d and %d are the same", older, t->count);
  TARN_TRY(name_token(t, token, line, length));
  *used += token->length;
  t->count++;
  return tarn__index_add(&t->index, hash);
}

tarn_status tarn__byte_tokens_read(tarn__byte_tokens *tokens, tarn__vocab_reader *reader, bool marks) {
  int64_t size;
  void *memory;
  size_t used = 0;
  int16_t byte_of[ALPHABET];
  fill_alphabet(byte_of);
  TARN_TRY(tarn__vocab_number(reader, &size, "size ", TARN__BYTE_TOKENS_MOST));
  TARN_REQUIRE(reader->end - reader->at <= INT32_MAX && reader->end - reader->at >= 2 * size, DATA,
               "damaged vocabulary: %lld tokens do not fit into it", (long long)size);
  TARN_TRY(tarn__arena_alloc(&tokens->arena, &memory, (size_t)size + 1, sizeof *tokens->tokens));
  tokens->tokens = memory;
  TARN_TRY(tarn__arena_alloc(&tokens->arena, &memory, (size_t)(reader->end - reader->at) + 1, 1));
  tokens->bytes = memory;
  while (tokens->count < size) {
    const char *line;
    size_t length;
    TARN_REQUIRE(tarn__vocab_line(reader, &line, &length), DATA, "damaged vocabulary: it ends after %d of %lld tokens",
                 tokens->count, (long long)size);
    TARN_TRY(add_token(tokens, &used, line, length, marks, byte_of));
  }
  return TARN_STATUS_OK;
}

// The ids that no merge may have.
typedef struct taboo {
  const int32_t *ids;
  int count;
} taboo;

static bool is_taboo(const taboo *special, int32_t id) {
  for (int i = 0; i < special->count; i++)
    if (special->ids[i] == id) return true;
  return false;
}

// One side of a merge: its id and its bytes.
static tarn_status read_side(const tarn__byte_tokens *t, int32_t *id, char *room, const char *text, size_t length,
                             int64_t number, const int16_t byte_of[ALPHABET], const taboo *special) {
  size_t size = read_token(room, text, length, byte_of);
  *id = size ? tarn__byte_tokens_find(t, room, size) : -1;
  TARN_REQUIRE(*id >= 0 && !is_taboo(special, *id), DATA,
               "damaged vocabulary: merge %lld is of \"%.*s\", which is no token", (long long)number,
               length > 80 ? 80 : (int)length, text);
  return TARN_STATUS_OK;
}

static tarn_status add_merge(tarn__byte_tokens *t, tarn_vocab_text *room, const char *line, size_t length,
                             int64_t number, const int16_t byte_of[ALPHABET], const taboo *special) {
  const char *blank = memchr(line, ' ', length);
  TARN_REQUIRE(blank, DATA, "damaged vocabulary: merge %lld (\"%.*s\") has no blank between two tokens",
               (long long)number, length > 80 ? 80 : (int)length, line);
  tarn__merge merge;
  bool fresh;
  size_t left = (size_t)(blank - line);
  TARN_TRY(tarn__grow(&room->data, &room->capacity, length, 1));
  TARN_TRY(read_side(t, &merge.left, room->data, line, left, number, byte_of, special));
  TARN_TRY(read_side(t, &merge.right, room->data, blank + 1, length - left - 1, number, byte_of, special));
  const tarn__byte_token *first = &t->tokens[merge.left], *second = &t->tokens[merge.right];
  memcpy(room->data, t->bytes + first->at, first->length);
  memcpy(room->data + first->length, t->bytes + second->at, second->length);
  merge.product = tarn__byte_tokens_find(t, room->data, (size_t)first->length + second->length);
  TARN_REQUIRE(merge.product >= 0, DATA, "damaged vocabulary: merge %lld (\"%.*s\") makes no token", (long long)number,
               length > 80 ? 80 : (int)length, line);
  TARN_REQUIRE(!is_taboo(special, merge.product), DATA, "damaged vocabulary: merge %lld makes %s", (long long)number,
               t->tokens[merge.product].text);
  TARN_TRY(tarn__pair_table_add(&t->merges, &fresh, &merge));
  TARN_REQUIRE(fresh, DATA, "damaged vocabulary: merge %lld (\"%.*s\") is there twice", (long long)number,
               length > 80 ? 80 : (int)length, line);
  return TARN_STATUS_OK;
}

tarn_status tarn__byte_tokens_read_merges(tarn__byte_tokens *tokens, tarn__vocab_reader *reader, const int32_t *special,
                                          int count, int64_t *at) {
  int64_t merges;
  tarn_vocab_text room = {0};
  const taboo none = {special, count};
  int16_t byte_of[ALPHABET];
  tarn_status status = TARN_STATUS_OK;
  fill_alphabet(byte_of);
  TARN_TRY(tarn__vocab_number(reader, &merges, "merges ", TARN__BYTE_TOKENS_MOST));
  for (*at = 0; *at < merges; ++*at) {
    const char *line;
    size_t length;
    if (tarn__vocab_line(reader, &line, &length))
      status = add_merge(tokens, &room, line, length, *at, byte_of, &none);
    else
      status = tarn__fail(TARN_STATUS_DATA, "damaged vocabulary: it ends after %lld of %lld merges", (long long)*at,
                          (long long)merges);
    if (status != TARN_STATUS_OK) break;
  }
  tarn_vocab_text_close(&room);
  return status;
}

// The vocabulary of one side from fairseq's dictionary, whose lines are a token, a blank and its count, and from what
// cuts texts into tokens.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "text/fairseq.h"
#include "text/marian.h"
#include "text/utf8.h"
#include "text/vocab_files.h"
#include "text/vocab_kind.h"

static const char OVERWRITE[] = " #fairseq:overwrite";
enum { OVERWRITE_LENGTH = sizeof OVERWRITE - 1, CUTS = 3 };
static const char *const CODES[CUTS] = {"bpecodes", "codes", "code"};
static const char *const MODELS[CUTS] = {"sentencepiece.bpe.model", "sentencepiece.model", "spm.model"};

bool tarn__fairseq_is_original(const char *path) {
  const char *name = tarn__vocab_base_name(path);
  const size_t length = strlen(name);
  return length > 9 && memcmp(name, "dict.", 5) == 0 && strcmp(name + length - 4, ".txt") == 0;
}

bool tarn__fairseq_is_count(const char *text, size_t length) {
  size_t at = length > 1 && text[0] == '-';
  while (at < length && text[at] >= '0' && text[at] <= '9') at++;
  return length > 0 && at == length;
}

static size_t without_blanks(const char *line, size_t length) {
  while (length > 0 && tarn__utf8_is_space(line[length - 1])) length--;
  return length;
}

// The lines of all tokens, with the special ones in front, and where each begins.
typedef struct tokens {
  tarn_vocab_text text;
  size_t *begins, capacity;
  tarn__index index;
} tokens;

static void close_tokens(tokens *t) {
  tarn_vocab_text_close(&t->text);
  tarn__free(t->begins);
  tarn__index_close(&t->index);
}

static bool has_token(const tokens *t, uint64_t hash, const char *token, size_t length) {
  size_t step = 0;
  for (int64_t number; (number = tarn__index_next(&t->index, hash, &step)) >= 0;) {
    const size_t begin = t->begins[number];
    if (t->text.length - begin > length && memcmp(t->text.data + begin, token, length) == 0 &&
        t->text.data[begin + length] == '\n')
      return true;
  }
  return false;
}

static tarn_status add_token(tokens *t, const char *token, size_t length, bool replaces, int64_t line,
                             const char *path) {
  const uint64_t hash = tarn__hash64(token, length, 0);
  TARN_REQUIRE(replaces || !has_token(t, hash, token, length), DATA,
               "%s:%lld: token \"%.*s\" occurs before, and the line does not end with \"%s\"", path, (long long)line,
               length < 100 ? (int)length : 100, token, OVERWRITE + 1);
  TARN_TRY(tarn__grow(&t->begins, &t->capacity, t->index.count + 1, sizeof *t->begins));
  t->begins[t->index.count] = t->text.length;
  TARN_TRY(tarn__index_add(&t->index, hash));
  TARN_TRY(tarn__vocab_append(&t->text, token, length));
  return tarn__vocab_append(&t->text, "\n", 1);
}

// The token of a line: what stands before the blank in front of the count. Behind the count there may be the mark that
// the token replaces an earlier one.
static tarn_status take_line(tokens *t, const char *line, size_t length, int64_t number, const char *path) {
  length = without_blanks(line, length);
  const bool replaces =
      length > OVERWRITE_LENGTH && memcmp(line + length - OVERWRITE_LENGTH, OVERWRITE, OVERWRITE_LENGTH) == 0;
  if (replaces) length -= OVERWRITE_LENGTH;
  const char *blank = memrchr(line, ' ', length);
  const size_t token = blank ? (size_t)(blank - line) : 0;
  TARN_REQUIRE(token > 0 && tarn__fairseq_is_count(blank + 1, length - token - 1), DATA,
               "%s:%lld: it is not a token, a blank and a count, as fairseq's dictionaries have", path,
               (long long)number);
  TARN_REQUIRE(tarn__utf8_valid(line, token) == token && !memchr(line, '\0', token), DATA,
               "%s:%lld: the token is not UTF-8, or holds a zero byte", path, (long long)number);
  return add_token(t, line, token, replaces, number, path);
}

static tarn_status read_tokens(tokens *t, int64_t *count, const char *path) {
  char *data;
  size_t size;
  for (int i = 0; i < TARN__FAIRSEQ_SPECIALS; i++)
    TARN_TRY(add_token(t, tarn__fairseq_specials[i], strlen(tarn__fairseq_specials[i]), false, 0, path));
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, "fairseq's"));
  tarn_status status = TARN_STATUS_OK;
  int64_t number = 0;
  for (const char *at = data, *end = data + size; at < end && status == TARN_STATUS_OK;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
    status = take_line(t, at, (size_t)(stop - at), ++number, path);
    at = newline ? newline + 1 : end;
  }
  *count = number + TARN__FAIRSEQ_SPECIALS;
  tarn__free(data);
  TARN_TRY(status);
  TARN_REQUIRE(*count <= TARN__FAIRSEQ_MOST, DATA, "%s: %lld tokens are more than %d", path, (long long)*count,
               TARN__FAIRSEQ_MOST);
  return TARN_STATUS_OK;
}

// The first of the files that is in the dictionary's folder; "": none is.
static tarn_status find_file(char found[PATH_MAX], const char *path, const char *const names[CUTS]) {
  for (int i = 0; i < CUTS; i++) {
    TARN_TRY(tarn__vocab_sibling(found, path, names[i]));
    if (tarn__file_exists(found)) return TARN_STATUS_OK;
  }
  found[0] = '\0';
  return TARN_STATUS_OK;
}

// Appends the line of a file's size and its bytes.
static tarn_status append_file(tarn_vocab_text *out, const char *key, const char *path) {
  char head[64], *data = NULL;
  size_t size = 0;
  if (*path) TARN_TRY(tarn__vocab_file_read(path, &data, &size, "fairseq's"));
  snprintf(head, sizeof head, "%s%zu\n", key, size);
  tarn_status status = tarn__vocab_append(out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, data ? data : "", size);
  tarn__free(data);
  return status;
}

static tarn_status write_all(tarn_vocab_text *out, const char *path) {
  char codes[PATH_MAX], model[PATH_MAX], head[96];
  int64_t count = 0;
  tokens all = {0};
  TARN_TRY(find_file(codes, path, CODES));
  TARN_TRY(find_file(model, path, MODELS));
  TARN_REQUIRE(!*codes || !*model, DATA, "%s cuts texts, and so does %s: keep one of them", codes, model);
  tarn_status status = read_tokens(&all, &count, path);
  snprintf(head, sizeof head, "%s1\n%s%lld\n", *model ? TARN__MARIAN_MAGIC : TARN__FAIRSEQ_MAGIC,
           *model ? TARN__MARIAN_SIZE : TARN__FAIRSEQ_SIZE, (long long)count);
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, all.text.data, all.text.length);
  close_tokens(&all);
  TARN_TRY(status);
  return append_file(out, *model ? TARN__MARIAN_MODEL : TARN__FAIRSEQ_CODES, *model ? model : codes);
}

tarn_status tarn__fairseq_import(char **bytes, size_t *size, const char *path) {
  tarn_vocab_text out = {0};
  const tarn_status status = write_all(&out, path);
  if (status != TARN_STATUS_OK) tarn_vocab_text_close(&out);
  *bytes = out.data;
  *size = out.length;
  return status;
}

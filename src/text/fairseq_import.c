// The vocabulary of one side from fairseq's dictionary, whose lines are a token, a blank and its count, and from what
// cuts texts into tokens.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
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

static bool is_number(const char *text, size_t length) {
  size_t at = length > 1 && text[0] == '-';
  while (at < length && text[at] >= '0' && text[at] <= '9') at++;
  return length > 0 && at == length;
}

static size_t without_blanks(const char *line, size_t length) {
  while (length > 0 && (line[length - 1] == ' ' || (line[length - 1] >= '\t' && line[length - 1] <= '\r'))) length--;
  return length;
}

// The token of a line: what stands before the blank in front of the count. Behind the count there may be the mark that
// the token replaces an earlier one.
static tarn_status take_line(tarn_vocab_text *tokens, const char *line, size_t length, int64_t number,
                             const char *path) {
  length = without_blanks(line, length);
  if (length > OVERWRITE_LENGTH && memcmp(line + length - OVERWRITE_LENGTH, OVERWRITE, OVERWRITE_LENGTH) == 0)
    length -= OVERWRITE_LENGTH;
  const char *blank = memrchr(line, ' ', length);
  const size_t token = blank ? (size_t)(blank - line) : 0;
  TARN_REQUIRE(token > 0 && is_number(blank + 1, length - token - 1), DATA,
               "%s:%lld: it is not a token, a blank and a count, as fairseq's dictionaries have", path,
               (long long)number);
  TARN_REQUIRE(tarn__utf8_valid(line, token) == token && !memchr(line, '\0', token), DATA,
               "%s:%lld: the token is not UTF-8, or holds a zero byte", path, (long long)number);
  TARN_TRY(tarn__vocab_append(tokens, line, token));
  return tarn__vocab_append(tokens, "\n", 1);
}

static tarn_status read_tokens(tarn_vocab_text *tokens, int64_t *count, const char *path) {
  char *data;
  size_t size;
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, "fairseq's"));
  tarn_status status = TARN_STATUS_OK;
  int64_t number = 0;
  for (const char *at = data, *end = data + size; at < end && status == TARN_STATUS_OK;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
    status = take_line(tokens, at, (size_t)(stop - at), ++number, path);
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
  tarn_vocab_text tokens = {0};
  TARN_TRY(find_file(codes, path, CODES));
  TARN_TRY(find_file(model, path, MODELS));
  TARN_REQUIRE(!*codes || !*model, DATA, "%s cuts texts, and so does %s: keep one of them", codes, model);
  tarn_status status = read_tokens(&tokens, &count, path);
  snprintf(head, sizeof head, "%s1\n%s%lld\n", *model ? TARN__MARIAN_MAGIC : TARN__FAIRSEQ_MAGIC,
           *model ? TARN__MARIAN_SIZE : TARN__FAIRSEQ_SIZE, (long long)count);
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, head, strlen(head));
  for (int i = 0; i < TARN__FAIRSEQ_SPECIALS && status == TARN_STATUS_OK; i++) {
    status = tarn__vocab_append(out, tarn__fairseq_specials[i], strlen(tarn__fairseq_specials[i]));
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, "\n", 1);
  }
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, tokens.data ? tokens.data : "", tokens.length);
  tarn_vocab_text_close(&tokens);
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

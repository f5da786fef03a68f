#include "text/list.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "text/marian.h"
#include "text/utf8.h"
#include "text/vocab_files.h"
#include "text/vocab_kind.h"
#include "text/words.h"

static const char BEFORE[] = "tokens.", BEHIND[] = ".txt", MODEL[] = ".spm", WHOSE[] = "a list of tokens as";
enum { BEFORE_LENGTH = sizeof BEFORE - 1, BEHIND_LENGTH = sizeof BEHIND - 1, MOST = 1000000 };  // tokens

bool tarn__list_is_original(const char *path) {
  const char *name = tarn__vocab_base_name(path);
  const size_t length = strlen(name);
  return length > BEFORE_LENGTH + BEHIND_LENGTH && memcmp(name, BEFORE, BEFORE_LENGTH) == 0 &&
         strcmp(name + length - BEHIND_LENGTH, BEHIND) == 0;
}

// The lines of all tokens so far, and their numbers by their texts.
typedef struct lines {
  const char **begins;
  size_t *lengths, begins_capacity, lengths_capacity;
  tarn__index index;
} lines;

// The number of a line, or -1.
static int32_t find(const lines *l, const char *line, size_t length) {
  const uint64_t hash = tarn__hash64(line, length, 0);
  size_t step = 0;
  for (int64_t number; (number = tarn__index_next(&l->index, hash, &step)) >= 0;)
    if (l->lengths[number] == length && memcmp(l->begins[number], line, length) == 0) return (int32_t)number;
  return -1;
}

static int32_t find_token(const void *self, const char *token) { return find(self, token, strlen(token)); }

static bool has_blank(const char *line, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (tarn__utf8_is_space(line[i])) return true;
  return false;
}

static tarn_status take_line(lines *l, const char *line, size_t length, int64_t number, const char *path) {
  TARN_REQUIRE(tarn__utf8_valid(line, length) == length && !memchr(line, '\0', length), DATA,
               "%s:%lld: the token is not UTF-8, or holds a zero byte", path, (long long)number);
  TARN_REQUIRE(!has_blank(line, length), DATA,
               "%s:%lld: the token holds white space, which separates tokens in texts; leave its line empty", path,
               (long long)number);
  TARN_REQUIRE(length == 0 || find(l, line, length) < 0, DATA, "%s:%lld: token \"%.*s\" occurs before", path,
               (long long)number, length < 100 ? (int)length : 100, line);
  TARN_REQUIRE(number <= MOST, DATA, "%s: there are more than %d tokens", path, MOST);
  TARN_TRY(tarn__grow(&l->begins, &l->begins_capacity, l->index.count + 1, sizeof *l->begins));
  TARN_TRY(tarn__grow(&l->lengths, &l->lengths_capacity, l->index.count + 1, sizeof *l->lengths));
  l->begins[l->index.count] = line;
  l->lengths[l->index.count] = length;
  return tarn__index_add(&l->index, tarn__hash64(line, length, 0));
}

static tarn_status read_lines(lines *l, const char *data, size_t size, const char *path) {
  int64_t number = 0;
  for (const char *at = data, *end = data + size; at < end;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
    size_t length = (size_t)(stop - at);
    if (length > 0 && at[length - 1] == '\r') length--;
    TARN_TRY(take_line(l, at, length, ++number, path));
    at = newline ? newline + 1 : end;
  }
  return TARN_STATUS_OK;
}

static tarn_status append_lines(tarn_vocab_text *out, const lines *l) {
  for (size_t i = 0; i < l->index.count; i++) {
    TARN_TRY(tarn__vocab_append(out, l->begins[i], l->lengths[i]));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
  }
  return TARN_STATUS_OK;
}

// The path of NAME.spm beside tokens.NAME.txt; "": there is no such file.
static tarn_status find_model(char found[PATH_MAX], const char *path) {
  char name[NAME_MAX + 1];
  const char *own = tarn__vocab_base_name(path) + BEFORE_LENGTH;
  const int length = (int)strlen(own) - BEHIND_LENGTH;
  snprintf(name, sizeof name, "%.*s%s", length, own, MODEL);
  TARN_TRY(tarn__vocab_sibling(found, path, name));
  if (!tarn__file_exists(found)) found[0] = '\0';
  return TARN_STATUS_OK;
}

static tarn_status append_model(tarn_vocab_text *out, const char *path) {
  char head[64], *data;
  size_t size;
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, WHOSE));
  snprintf(head, sizeof head, "%s%zu\n", TARN__MARIAN_MODEL, size);
  tarn_status status = tarn__vocab_append(out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, data, size);
  tarn__free(data);
  return status;
}

static tarn_status write_all(tarn_vocab_text *out, lines *l, const char *data, size_t size, const char *path) {
  char model[PATH_MAX], head[96];
  tarn__vocab_facts facts = {0};
  TARN_TRY(read_lines(l, data, size, path));
  const tarn_status status = tarn__vocab_named_facts(&facts, l, find_token);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", path);
  TARN_TRY(find_model(model, path));
  TARN_REQUIRE(!*model || find(l, "", 0) < 0, DATA, "%s:%d: an empty line cannot be a token when %s cuts the text",
               path, find(l, "", 0) + 1, model);
  if (*model)
    snprintf(head, sizeof head, "%s2\n%s%zu\n", TARN__MARIAN_MAGIC, TARN__MARIAN_SIZE, l->index.count);
  else
    snprintf(head, sizeof head, "%s3\nlowercase 0\nsize %zu\n", TARN__WORDS_MAGIC, l->index.count);
  TARN_TRY(tarn__vocab_append(out, head, strlen(head)));
  TARN_TRY(append_lines(out, l));
  return *model ? append_model(out, model) : TARN_STATUS_OK;
}

tarn_status tarn__list_import(char **bytes, size_t *size, const char *path) {
  char *data;
  size_t length;
  lines l = {0};
  tarn_vocab_text out = {0};
  *bytes = NULL;
  TARN_TRY(tarn__vocab_file_read(path, &data, &length, WHOSE));
  const tarn_status status = write_all(&out, &l, data, length, path);
  tarn__free(l.begins);
  tarn__free(l.lengths);
  tarn__index_close(&l.index);
  tarn__free(data);
  if (status != TARN_STATUS_OK) tarn_vocab_text_close(&out);
  *bytes = out.data;
  *size = out.length;
  return status;
}

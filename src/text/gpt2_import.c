// GPT-2's vocabulary from the files of OpenAI and Hugging Face: a JSON object from tokens to ids, and a list of merges.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/byte_tokens.h"
#include "text/gpt2.h"
#include "text/vocab_files.h"
#include "text/vocab_kind.h"
#include "text/wordpiece.h"

enum { PAIRS = 2 };

// Names used by Hugging Face and by OpenAI.
static const struct {
  const char *tokens, *merges;
} NAMES[PAIRS] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

// The pair that a file's name belongs to, or -1.
static int pair_of(const char *path) {
  const char *name = tarn__vocab_base_name(path);
  for (int i = 0; i < PAIRS; i++)
    if (strcmp(name, NAMES[i].tokens) == 0 || strcmp(name, NAMES[i].merges) == 0) return i;
  return -1;
}

// A folder of BERT's is not one of GPT-2's.
bool tarn__gpt2_is_original(const char *path) {
  return pair_of(path) >= 0 || (tarn__vocab_is_folder(path) && !tarn__wordpiece_is_original(path));
}

// The two files.
static tarn_status find_files(char tokens[PATH_MAX], char merges[PATH_MAX], const char *path) {
  int pair = tarn__vocab_is_folder(path) ? -1 : pair_of(path);
  for (int i = 0; i < PAIRS && pair < 0; i++) {
    TARN_TRY(tarn__vocab_sibling(tokens, path, NAMES[i].tokens));
    if (tarn__file_exists(tokens)) pair = i;
  }
  TARN_REQUIRE(pair >= 0, DATA, "%s: there is neither vocab.json nor encoder.json in this folder", path);
  TARN_TRY(tarn__vocab_sibling(tokens, path, NAMES[pair].tokens));
  return tarn__vocab_sibling(merges, path, NAMES[pair].merges);
}

// RoBERTa's vocabularies contain GPT-2's, possibly with its end of text.
static bool is_roberta(const json_t *object) {
  static const char *const names[] = {"<s>", "</s>", "<mask>"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!json_object_get(object, names[i])) return false;
  return true;
}

static tarn_status write_tokens(tarn_vocab_text *out, json_t *object, const char *path) {
  char head[64];
  void *memory;
  size_t count = json_object_size(object);
  TARN_REQUIRE(json_is_object(object), DATA, "%s: not a JSON object from tokens to ids", path);
  TARN_REQUIRE(count <= TARN__BYTE_TOKENS_MOST, DATA, "%s: %zu tokens are more than %d", path, count,
               TARN__BYTE_TOKENS_MOST);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(const char *)));
  const char **tokens = memory;
  tarn_status status = tarn__vocab_json_order(tokens, object, " \n", path);
  snprintf(head, sizeof head, "%s1\nsize %zu\n", is_roberta(object) ? TARN__ROBERTA_MAGIC : TARN__GPT2_MAGIC, count);
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, head, strlen(head));
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    status = tarn__vocab_append(out, tokens[i], strlen(tokens[i]));
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, "\n", 1);
  }
  tarn__free(memory);
  return status;
}

static tarn_status import_tokens(tarn_vocab_text *out, const char *path) {
  json_t *object;
  TARN_TRY(tarn__vocab_json_read(&object, path, "GPT-2's"));
  tarn_status status = write_tokens(out, object, path);
  json_decref(object);
  return status;
}

// The next non-empty line of the list of merges; a last one without an end counts.
static bool next_merge(const char **at, const char *end, const char **line, size_t *length) {
  while (*at < end) {
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *length = (size_t)((newline ? newline : end) - *at);
    *at = newline ? newline + 1 : end;
    if (*length && (*line)[*length - 1] == '\r') --*length;
    if (*length) return true;
  }
  return false;
}

// The first line may be a version, such as "#version: 0.2".
static const char *skip_version(const char *data, const char *end) {
  static const char VERSION[] = "#version";
  if ((size_t)(end - data) < sizeof VERSION - 1 || memcmp(data, VERSION, sizeof VERSION - 1) != 0) return data;
  const char *newline = memchr(data, '\n', (size_t)(end - data));
  return newline ? newline + 1 : end;
}

static tarn_status write_merges(tarn_vocab_text *out, const char *data, size_t size, const char *path) {
  char head[64];
  const char *line;
  size_t length;
  int64_t count = 0;
  const char *rest = skip_version(data, data + size);
  for (const char *at = rest; next_merge(&at, data + size, &line, &length);) count++;
  TARN_REQUIRE(count <= TARN__BYTE_TOKENS_MOST, DATA, "%s: %lld merges are more than %d", path, (long long)count,
               TARN__BYTE_TOKENS_MOST);
  snprintf(head, sizeof head, "merges %lld\n", (long long)count);
  TARN_TRY(tarn__vocab_append(out, head, strlen(head)));
  for (const char *at = rest; next_merge(&at, data + size, &line, &length);) {
    TARN_TRY(tarn__vocab_append(out, line, length));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
  }
  return TARN_STATUS_OK;
}

// The line of a merge in its file, from 1.
static int64_t line_of(const char *data, size_t size, int64_t merge) {
  const char *at = skip_version(data, data + size), *line = data;
  size_t length;
  for (int64_t i = 0; i <= merge && next_merge(&at, data + size, &line, &length);) i++;
  int64_t number = 1;
  for (const char *c = data; c < line; c++) number += *c == '\n';
  return number;
}

// Errors in the vocabulary are reported with their place in the two files.
static tarn_status check(const tarn_vocab_text *out, const char *tokens, const char *merges, const char *data,
                         size_t size) {
  int64_t merge;
  tarn_status status = tarn__gpt2_check(&merge, out->data, out->length);
  if (status == TARN_STATUS_OK) return status;
  if (merge < 0) return tarn__fail_prefix(status, "%s: ", tokens);
  return tarn__fail_prefix(status, "%s:%lld: ", merges, (long long)line_of(data, size, merge));
}

static tarn_status import_merges(tarn_vocab_text *out, const char *tokens, const char *path) {
  char *data = NULL;
  size_t size;
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, "GPT-2's"));
  tarn_status status = write_merges(out, data, size, path);
  if (status == TARN_STATUS_OK) status = check(out, tokens, path, data, size);
  tarn__free(data);
  return status;
}

tarn_status tarn__gpt2_import(char **bytes, size_t *size, const char *path) {
  char tokens[PATH_MAX], merges[PATH_MAX];
  tarn_vocab_text out = {0};
  *bytes = NULL;
  TARN_TRY(find_files(tokens, merges, path));
  tarn_status status = import_tokens(&out, tokens);
  if (status == TARN_STATUS_OK) status = import_merges(&out, tokens, merges);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}

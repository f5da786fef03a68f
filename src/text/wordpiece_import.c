// BERT's vocabulary from vocab.txt, one token per line, and the settings in tokenizer_config.json in the same folder.
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "text/vocab_files.h"
#include "text/vocab_kind.h"
#include "text/wordpiece.h"

static const char TOKENS[] = "vocab.txt";
static const char SETTINGS[] = "tokenizer_config.json";

bool tarn__wordpiece_is_original(const char *path) {
  char other[PATH_MAX];
  if (!tarn__vocab_is_folder(path)) return strcmp(tarn__vocab_base_name(path), TOKENS) == 0;
  if (tarn__path_join(other, path, TOKENS) != TARN_STATUS_OK || !tarn__file_exists(other)) return false;
  static const char *const OF_GPT2[] = {"vocab.json", "encoder.json"};
  for (int i = 0; i < 2; i++)
    if (tarn__path_join(other, path, OF_GPT2[i]) != TARN_STATUS_OK || tarn__file_exists(other)) return false;
  return true;
}

// A boolean key, or null, which counts as missing.
static tarn_status read_flag(bool *flag, const json_t *object, const char *key, const char *path) {
  const json_t *value = json_object_get(object, key);
  if (!value || json_is_null(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_boolean(value), DATA, "%s: \"%s\" must be true or false", path, key);
  *flag = json_is_true(value);
  return TARN_STATUS_OK;
}

static tarn_status take_settings(tarn__bert_rules *rules, const json_t *object, const char *path) {
  bool basic = true;
  TARN_REQUIRE(json_is_object(object), DATA, "%s: not a JSON object", path);
  TARN_TRY(read_flag(&basic, object, "do_basic_tokenize", path));
  TARN_REQUIRE(basic, DATA, "%s: \"do_basic_tokenize\" is false: text that is split already is not supported", path);
  TARN_TRY(read_flag(&rules->lowercase, object, "do_lower_case", path));
  rules->strip_accents = rules->lowercase;
  TARN_TRY(read_flag(&rules->strip_accents, object, "strip_accents", path));
  return read_flag(&rules->chinese, object, "tokenize_chinese_chars", path);
}

// The default of the package transformers is uncased.
static tarn_status read_settings(tarn__bert_rules *rules, const char *path, tarn_wordpiece_case casing) {
  char settings[PATH_MAX];
  *rules = (tarn__bert_rules){.lowercase = true, .strip_accents = true, .chinese = true};
  TARN_TRY(tarn__vocab_sibling(settings, path, SETTINGS));
  if (tarn__file_exists(settings)) {
    json_t *object;
    TARN_TRY(tarn__vocab_json_read(&object, settings, "BERT's"));
    tarn_status status = take_settings(rules, object, settings);
    json_decref(object);
    TARN_TRY(status);
  }
  if (casing != TARN_WORDPIECE_CASE_AS_SAID) rules->lowercase = rules->strip_accents = casing == TARN_WORDPIECE_UNCASED;
  return TARN_STATUS_OK;
}

// The length of a line without trailing white space.
static size_t trim(const char *line, size_t length) {
  size_t kept = 0;
  for (size_t at = 0; at < length;) {
    int32_t code;
    at += tarn__utf8_decode(&code, line + at, length - at);
    if (code < 0 || !u_isUWhiteSpace(code)) kept = at;
  }
  return kept;
}

// Writes the lines of the file to ours; a last one without an end counts.
static tarn_status write_tokens(tarn_vocab_text *out, const tarn__bert_rules *rules, const char *data, size_t size,
                                const char *path) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++) count += data[i] == '\n';
  count += size && data[size - 1] != '\n';
  TARN_REQUIRE(count <= TARN__WORDPIECE_MOST, DATA, "%s: %zu tokens are more than %d", path, count,
               TARN__WORDPIECE_MOST);
  TARN_TRY(tarn__wordpiece_head(out, rules, count));
  const char *at = data;
  for (size_t number = 1; number <= count; number++) {
    const char *newline = memchr(at, '\n', size - (size_t)(at - data));
    const size_t length = newline ? (size_t)(newline - at) : size - (size_t)(at - data);
    TARN_REQUIRE(tarn__utf8_valid(at, length) == length && !memchr(at, '\0', length), DATA,
                 "%s:%zu: the token is not UTF-8, or holds a zero byte", path, number);
    TARN_TRY(tarn__vocab_append(out, at, trim(at, length)));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
    at += length + 1;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__wordpiece_import(char **bytes, size_t *size, const char *path, tarn_wordpiece_case casing) {
  char tokens[PATH_MAX];
  char *data;
  size_t data_size;
  tarn__bert_rules rules;
  tarn_vocab_text out = {0};
  *bytes = NULL;
  TARN_TRY(tarn__vocab_sibling(tokens, path, TOKENS));
  TARN_TRY(read_settings(&rules, path, casing));
  TARN_TRY(tarn__vocab_file_read(tokens, &data, &data_size, "BERT's"));
  tarn_status status = write_tokens(&out, &rules, data, data_size, tokens);
  tarn__free(data);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}

#include "foreign/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/log.h"
#include "base/memory.h"
#include "description/description.h"
#include "parts/table/part_table.h"
#include "tarn/text.h"

enum { LARGEST = 1 << 20, MOST_TOLD = 10 };  // bytes of a config.json

// The package's words for our activations; the first one of an activation is written.
static const struct {
  const char *word;
  const tarn__part *activation;
} ACTIVATIONS[] = {
    {"gelu_new", &tarn__activation_gelu_tanh.part},  {"gelu_pytorch_tanh", &tarn__activation_gelu_tanh.part},
    {"gelu_fast", &tarn__activation_gelu_tanh.part}, {"gelu", &tarn__activation_gelu.part},
    {"relu", &tarn__activation_relu.part},           {"swish", &tarn__activation_swish.part},
    {"silu", &tarn__activation_swish.part},
};
enum { ACTIVATION_WORDS = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

tarn_status tarn__hf_config_open(tarn__hf_config *config, const char *path) {
  char *data = NULL;
  size_t size;
  json_error_t error;
  config->path = path;
  config->object = NULL;
  TARN_TRY(tarn__file_read(path, &data, &size));
  tarn_status status = size <= LARGEST ? tarn__json_parse(&config->object, data, size, JSON_REJECT_DUPLICATES, &error)
                                       : tarn__fail(TARN_STATUS_DATA, "%s: more than %d bytes", path, LARGEST);
  tarn__free(data);
  TARN_TRY(status);
  TARN_REQUIRE(config->object, DATA, "%s:%d: %s", path, error.line, error.text);
  if (json_is_object(config->object)) return TARN_STATUS_OK;
  tarn__hf_config_close(config);
  return tarn__fail(TARN_STATUS_DATA, "%s: not a JSON object", path);
}

void tarn__hf_config_close(tarn__hf_config *config) {
  json_decref(config->object);
  config->object = NULL;
}

json_t *tarn__hf_value(const tarn__hf_config *config, const char *key) {
  json_t *value = json_object_get(config->object, key);
  return json_is_null(value) ? NULL : value;
}

static bool is_known(const tarn__hf_config *config, const char *key) {
  for (size_t i = 0; i < config->known_count; i++)
    if (strcmp(config->known[i], key) == 0) return true;
  return false;
}

tarn_status tarn__hf_check_layers(const tarn__hf_config *config, const char *key, int64_t layers) {
  TARN_REQUIRE(layers <= TARN_CONFIG_LAYERS, DATA, "%s: \"%s\" is %lld, but a stack has at most %d layers",
               config->path, key, (long long)layers, TARN_CONFIG_LAYERS);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_check_divides(const tarn__hf_config *config, const char *key, int64_t number, const char *whole,
                                   int64_t all) {
  TARN_REQUIRE(all % number == 0, DATA, "%s: \"%s\" is %lld, which does not divide \"%s\" (%lld)", config->path, key,
               (long long)number, whole, (long long)all);
  return TARN_STATUS_OK;
}

void tarn__hf_tell_unknown(const tarn__hf_config *config) {
  char list[600] = "";
  size_t count = 0, used = 0;
  const char *key;
  json_t *value;
  json_object_foreach(config->object, key, value) {
    if (is_known(config, key) || ++count > MOST_TOLD) continue;
    const char *near = tarn_text_nearest(key, config->known, config->known_count);
    if (near && tarn__hf_value(config, near)) near = NULL;
    const int length = snprintf(list + used, sizeof list - used, "%s\"%.40s\"%s%s%s", used ? ", " : "", key,
                                near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    used += length > 0 && (size_t)length < sizeof list - used ? (size_t)length : 0;
  }
  if (count)
    tarn__log(TARN_LOG_WARNING, "%s: keys that no %s model is known by are left alone: %s%s", config->path,
              config->model, list, count > MOST_TOLD ? " and others" : "");
}

// Fails for a missing key, and suggests a similar one.
static tarn_status fail_missing(const tarn__hf_config *config, const char *wanted) {
  const char *key;
  json_t *value;
  json_object_foreach(config->object, key, value) {
    if (!is_known(config, key) && tarn_text_nearest(key, &wanted, 1))
      return tarn__fail(TARN_STATUS_DATA, "%s: it has no \"%s\", but \"%.40s\"", config->path, wanted, key);
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: it has no \"%s\"", config->path, wanted);
}

// A whole number, in JSON also written as 1e3 or 1000.0; from 2^53 on doubles do not represent all whole numbers.
static bool take_whole(int64_t *number, const json_t *value) {
  const double real = json_real_value(value);
  const bool whole = json_is_real(value) && real == floor(real) && fabs(real) < 0x1p53;
  if (json_is_integer(value) || whole) *number = whole ? (int64_t)real : json_integer_value(value);
  return json_is_integer(value) || whole;
}

tarn_status tarn__hf_size(const tarn__hf_config *config, int64_t *number, const char *key, int64_t other) {
  json_t *value = tarn__hf_value(config, key);
  *number = other;
  if (!value && other > 0) return TARN_STATUS_OK;
  if (!value) return fail_missing(config, key);
  TARN_REQUIRE(take_whole(number, value) && *number >= 1 && *number <= 1 << 24, DATA,
               "%s: \"%s\" is not a whole number from 1 to %d", config->path, key, 1 << 24);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_real(const tarn__hf_config *config, double *number, const char *key, double other) {
  json_t *value = tarn__hf_value(config, key);
  *number = other;
  if (!value) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_number(value), DATA, "%s: \"%s\" is not a number", config->path, key);
  *number = json_number_value(value);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_flag(const tarn__hf_config *config, bool *flag, const char *key, bool other) {
  json_t *value = tarn__hf_value(config, key);
  *flag = other;
  if (!value) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_boolean(value), DATA, "%s: \"%s\" is neither true nor false", config->path, key);
  *flag = json_is_true(value);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_token(const tarn__hf_config *config, int64_t *id, const char *key, int64_t other) {
  json_t *value = tarn__hf_value(config, key);
  *id = value ? -1 : other;
  if (!value || json_is_array(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(take_whole(id, value), DATA, "%s: \"%s\" is not a whole number", config->path, key);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_word(const tarn__hf_config *config, const char **word, const char *key, const char *other) {
  json_t *value = tarn__hf_value(config, key);
  *word = other;
  if (!value && other) return TARN_STATUS_OK;
  if (!value) return fail_missing(config, key);
  *word = json_string_value(value);
  TARN_REQUIRE(*word, DATA, "%s: \"%s\" is not a text", config->path, key);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_activation(const tarn__hf_config *config, const tarn__part **activation, const char *key,
                                const char *other) {
  const char *word;
  TARN_TRY(tarn__hf_word(config, &word, key, other));
  for (size_t i = 0; i < ACTIVATION_WORDS; i++) {
    if (strcmp(word, ACTIVATIONS[i].word) != 0) continue;
    *activation = ACTIVATIONS[i].activation;
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_DATA,
                    "%s: \"%s\" is \"%.40s\"; tarn has gelu_new (also as gelu_pytorch_tanh and "
                    "gelu_fast), gelu, relu and swish (also as silu)",
                    config->path, key, word);
}

const char *tarn__hf_activation_word(const tarn__part *activation) {
  const char *word = NULL;
  for (size_t i = 0; i < ACTIVATION_WORDS && !word; i++)
    if (ACTIVATIONS[i].activation == activation) word = ACTIVATIONS[i].word;
  return word;
}

tarn_status tarn__hf_demand(const tarn__hf_config *config, const char *key, bool needed) {
  bool flag;
  TARN_TRY(tarn__hf_flag(config, &flag, key, needed));
  TARN_REQUIRE(flag == needed, DATA, "%s: \"%s\" is %s, which tarn does not have", config->path, key,
               flag ? "true" : "false");
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_demand_size(const tarn__hf_config *config, const char *key, int64_t shown, const char *origin) {
  int64_t told;
  TARN_TRY(tarn__hf_size(config, &told, key, shown));
  TARN_REQUIRE(told == shown, DATA, "%s: \"%s\" is %lld, but by the tensors of %s it is %lld", config->path, key,
               (long long)told, origin, (long long)shown);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_config_write(json_t *object, const char *path) {
  char *text = tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "%s: no memory to write it", path);
  tarn_status status = tarn__file_write(path, text, strlen(text));
  free(text);
  return status;
}

tarn_status tarn__hf_name_key(tarn_status status, const tarn__hf_key *keys, const char *origin) {
  char message[512];
  snprintf(message, sizeof message, "%s", tarn_error_message());
  if (status != TARN_STATUS_USAGE) return status;
  for (; keys->ours; keys++) {
    const char *found = strstr(message, keys->ours);
    if (found)
      return tarn__fail(TARN_STATUS_DATA, "%.220s: \"%s\": %s", origin, keys->theirs, found + strlen(keys->ours));
  }
  return TARN_STATUS_DATA;
}

// Descriptions as text, for tests of their parser. Include it after cmocka.h.
#ifndef TARN_TESTS_CONFIG_TEXT_H
#define TARN_TESTS_CONFIG_TEXT_H

#include <string.h>

#include "tarn/config.h"
#include "tarn/status.h"

// A translation model with the kinds L and R.
#define SMALL                           \
  "model: { d_model: 8, norm: post }\n" \
  "encoder:\n"                          \
  "  layers: (R L)*2\n"                 \
  "decoder: { layers: L }\n"            \
  "kinds:\n"                            \
  "  L: { heads: 2, ffn: 16 }\n"        \
  "  R: { heads: 2, frozen: yes }\n"    \
  "train: { lr: 0.002 }\n"

static inline tarn_status parse(tarn_config **config, const char *text, const char *override) {
  return tarn_config_parse(config, "m.yaml", text, strlen(text), &override, override ? 1 : 0);
}

static inline tarn_config *parsed(const char *text, const char *override) {
  tarn_config *config;
  if (parse(&config, text, override) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return config;
}

static inline void expect_error(const char *text, const char *override, const char *message) {
  tarn_config *config;
  assert_int_equal(parse(&config, text, override), TARN_STATUS_USAGE);
  assert_null(config);
  assert_string_equal(tarn_error_message(), message);
}

typedef struct refused_key {
  const char *override, *words;  // words: expected in the message
} refused_key;

static inline void expect_refused_keys(const char *text, const refused_key *keys, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_config *config;
    assert_int_equal(parse(&config, text, keys[i].override), TARN_STATUS_USAGE);
    if (!strstr(tarn_error_message(), keys[i].words))
      fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), keys[i].words);
  }
}

#endif

// Models that come from files of the package transformers, or go there: for tests of one format each. Include it after
// cmocka.h.
#ifndef TARN_TESTS_IMPORT_CHECK_H
#define TARN_TESTS_IMPORT_CHECK_H

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox.h"
#include "store/checkpoint.h"
#include "tarn/process.h"
#include "tarn/vocab.h"

#define GOLDEN TARN_SOURCE_DIR "/tests/golden/"

static inline void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// The message of what just failed has these words.
static inline void must_say(const char *words) {
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

// A sandbox with the vocabulary of bytes in the file `bytes`.
static inline int open_with_bytes(void **state, bool mask_symbols) {
  if (sandbox_open(state) != 0) return -1;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.mask_symbols = mask_symbols;
  return tarn_vocab_train("bytes", NULL, 0, &options) == TARN_STATUS_OK ? 0 : -1;
}

// Kinds of such models, and of models that are none.
#define KINDS                                                                                                         \
  "kinds:\n  L: { heads: 2, ffn: 32 }\n  R: { heads: 2, ffn: 32, frozen: yes }\n"                                     \
  "  H: { heads: 2, ffn: 32, frozen: yes, init: hadamard }\n  N: { mixer: none, ffn: 32 }\n  W: { heads: 2, ffn: 48 " \
  "}\n"

// A model of this description with a vocabulary, trained by nobody.
static inline void save_model(const char *path, const char *text, const char *vocab_path) {
  tarn_config *config;
  tarn_vocab *vocab;
  tarn__model *model;
  must(tarn_vocab_open(&vocab, vocab_path));
  must(tarn_config_parse(&config, "test", text, strlen(text), NULL, 0));
  must(tarn__model_open(&model, config, tarn_vocab_size(vocab), tarn_vocab_size(vocab), TARN__F32, false));
  must(tarn__model_allocate(model));
  must(tarn__model_initialise(model, 3));
  tarn__checkpoint_extra extra = {.source = vocab, .target = vocab};
  must(tarn__checkpoint_save(path, model, &extra));
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn_vocab_close(&vocab);
}

// Two vocabularies are the same to the byte.
static inline void check_same_vocab(const char *a, const char *b) {
  tarn_vocab *one, *other;
  must(tarn_vocab_open(&one, a));
  must(tarn_vocab_open(&other, b));
  assert_string_equal(tarn_vocab_hash(one), tarn_vocab_hash(other));
  tarn_vocab_close(&one);
  tarn_vocab_close(&other);
}

static inline void copy_file(const char *from, const char *to) {
  char *data;
  size_t size;
  must(tarn__file_read(from, &data, &size));
  sandbox_write(to, data, size);
  tarn__free(data);
}

// Writes the file `from` with one text in place of another, which it has.
static inline void write_changed(const char *to, const char *from, const char *old, const char *new) {
  char *text, changed[4096];
  size_t size;
  must(tarn__file_read(from, &text, &size));
  const char *place = strstr(text, old);
  if (!place) fail_msg("no %s", old);
  const int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, new, place + strlen(old));
  assert_true(length < (int)sizeof changed);
  sandbox_write(to, changed, (size_t)length);
  tarn__free(text);
}

// The last warning of the log, and how many there were, while tarn_log_set(keep_warning, NULL) holds.
static char warnings[1024];
static int warning_count;

static inline void keep_warning(void *user, tarn_log_level level, const char *text) {
  (void)user;
  (void)level;
  snprintf(warnings, sizeof warnings, "%s", text);
  warning_count++;
}

#endif

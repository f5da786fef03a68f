// A tiny training for tests: data, a Model4-like description (frozen and shared layers) and a run of it.
#ifndef TARN_TESTS_TINY_RUN_H
#define TARN_TESTS_TINY_RUN_H

#include <string.h>

#include "make_shard.h"
#include "sandbox.h"
#include "tarn/lab/dynamics.h"
#include "tarn/train.h"

enum { TINY_VOCAB = 60 };

static const char tiny_config[] =
    "model: { d_model: 16, embeddings: all, dropout: 0.2 }\n"
    "encoder: { layers: \"(R1 L1)*2\" }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: train, valid: valid }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, log_every: 2, save_every: 5, keep_last: 2,\n"
    "         average: 2, threads: 2, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

// Creates the sandbox files vocab, train.tarn, valid.tarn, tiny.yaml.
static inline void tiny_files(void) {
  tarn_vocab *vocab = make_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("vocab", bytes, size);
  tarn_vocab_close(&vocab);
  make_shard("train", 120, TINY_VOCAB, TINY_VOCAB, 5);
  make_shard("valid", 12, TINY_VOCAB, TINY_VOCAB, 6);
  sandbox_write("tiny.yaml", tiny_config, strlen(tiny_config));
}

// Creates a sandbox with these files: the set-up of a group of tests; sandbox_close() is the teardown.
static inline int tiny_open(void **state) {
  if (sandbox_open(state) != 0) return -1;
  tiny_files();
  return 0;
}

// The same with texts, text.tarn and valid_text.tarn, and another description in tiny.yaml for them.
static inline int tiny_open_text(void **state, const char *description) {
  if (tiny_open(state) != 0) return -1;
  make_text_shard("text", 120, TINY_VOCAB, 5);
  make_text_shard("valid_text", 12, TINY_VOCAB, 6);
  sandbox_write("tiny.yaml", description, strlen(description));
  return 0;
}

// Opens, runs and closes a training with these options.
static inline tarn_status tiny_run(const tarn_train_options *options) {
  tarn_train *train;
  tarn_train_result result;
  tarn_status status = tarn_train_open(&train, options);
  if (status == TARN_STATUS_OK) status = tarn_train_run(train, &result);
  tarn_train_close(&train);
  return status;
}

// Opens a training of a description; the caller closes it.
static inline tarn_train *tiny_open_train(const char *config, const char *run, const char *const *overrides,
                                          size_t count) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = config;
  options.run = run;
  options.overrides = overrides;
  options.override_count = count;
  tarn_train *train;
  if (tarn_train_open(&train, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return train;
}

// Opens and runs a training; config NULL resumes. The caller checks the result.
static inline tarn_status tiny_train(const char *config, const char *run, const char *const *overrides, size_t count,
                                     void (*on_event)(void *, const tarn_train_event *), void *user,
                                     const volatile sig_atomic_t *stop) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = config;
  options.resume = config == NULL;
  options.run = run;
  options.overrides = overrides;
  options.override_count = count;
  options.on_event = on_event;
  options.user = user;
  options.stop = stop;
  tarn_dynamics_follow(&options);  // of descriptions that ask for exponents
  return tiny_run(&options);
}

#endif

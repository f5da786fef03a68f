// Runs of tiny models of several tasks, for the uses of functions that work with them, and paths that are no model.
#ifndef TARN_TESTS_API_MODELS_H
#define TARN_TESTS_API_MODELS_H

#include "api.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tarn/data.h"
#include "tiny_run.h"

#define API_KINDS "kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }\n"
#define API_TRAIN "train: { max_updates: 2, lr: 0.01, warmup: 4, max_tokens: 400, threads: 1 }\n"

static inline void api_write(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

// Another time of the last change, from which its readers see that a file may not be what they opened.
static inline void api_change(const char *path) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static inline void api_run(const char *description, const char *run) {
  api_write("model.yaml", description);
  works(tiny_train("model.yaml", run, NULL, 0, NULL, NULL, NULL));
}

static inline void api_translation(const char *run) {
  api_run(
      "model: { d_model: 16, embeddings: all, dropout: 0, max_length: 20 }\n"
      "encoder: { layers: \"L1*2\" }\ndecoder: { layers: L }\n" API_KINDS
      "data: { vocab: vocab, train: train }\n" API_TRAIN,
      run);
}

static inline void api_language(const char *run) {
  make_text_shard("text", 60, TINY_VOCAB, 5);
  api_run("model: { d_model: 16, dropout: 0, max_length: 20 }\ndecoder: { layers: L }\n" API_KINDS
          "data: { vocab: vocab, train: text }\n" API_TRAIN,
          run);
}

// A masked language model, whose vocabulary has other special tokens.
static inline void api_masked(const char *run) {
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  make_text_shard_of("masked", 60, vocab, 5);
  tarn_vocab_close(&vocab);
  api_run(
      "model: { task: masked-language-model, d_model: 16, dropout: 0, max_length: 20 }\n"
      "encoder: { layers: L }\n" API_KINDS "data: { vocab: masks, train: masked }\n" API_TRAIN,
      run);
}

// A set of labels from a table of 8 rows; `numbers`: for regression.
static inline void api_labelled(const char *output, const char *vocab, bool numbers, const char *const labels[2]) {
  char table[512] = "text\tlabel\n";
  for (int i = 0; i < 8; i++) {
    const size_t used = strlen(table);
    snprintf(table + used, sizeof table - used, "w%d w%d\t%s\n", 6 + i, 20 + i * 3, labels[i % 2]);
  }
  api_write("table.tsv", table);
  tarn_labelled_options options;
  tarn_labelled_result result;
  tarn_labelled_default(&options);
  options.table = "table.tsv", options.text = "text", options.label = "label";
  options.vocab = vocab, options.output = output, options.numbers = numbers;
  works(tarn_labelled_prepare(&result, &options));
}

static inline void api_classifier(const char *run) {
  api_labelled("labels", "vocab", false, (const char *const[]){"bad", "good"});
  api_run(
      "model: { task: classification, d_model: 16, dropout: 0, max_length: 20 }\n"
      "encoder: { layers: L }\nhead: { pool: mean }\n" API_KINDS "data: { vocab: vocab, train: labels }\n" API_TRAIN,
      run);
}

static inline void api_regression(const char *run) {
  api_labelled("numbers", "vocab", true, (const char *const[]){"0.5", "2"});
  api_run(
      "model: { task: regression, d_model: 16, dropout: 0, max_length: 20 }\n"
      "encoder: { layers: L }\nhead: { pool: mean }\n" API_KINDS "data: { vocab: vocab, train: numbers }\n" API_TRAIN,
      run);
}

// Paths that are no model: "missing", "garbage", "folder", and "torn", a checkpoint that was cut.
static inline void api_no_models(const char *run) {
  static char bytes[1 << 20];
  char path[256];
  snprintf(path, sizeof path, "%s/checkpoint_last.safetensors", run);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s cannot be read", path);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_in_range(size, 1000, sizeof bytes - 1);
  sandbox_write("torn", bytes, size - 500);
  api_write("garbage", "this is no model\n");
  assert_int_equal(mkdir("folder", 0777), 0);
}

// What api_no_models() made, given to a function that opens a model.
#define REFUSES_NO_MODELS(open, handle, options)                                    \
  do {                                                                              \
    refuses(open(&(handle), "missing", &(options)), TARN_STATUS_IO, "missing: ");   \
    assert_null(handle);                                                            \
    refuses(open(&(handle), "garbage", &(options)), TARN_STATUS_DATA, "garbage: "); \
    refuses(open(&(handle), "torn", &(options)), TARN_STATUS_DATA, "torn: ");       \
    refuses(open(&(handle), "folder", &(options)), TARN_STATUS_DATA, "folder: ");   \
  } while (0)

// Texts, three of which have a line that may be refused.
static inline void api_texts(void) {
  api_write("lines", "w3 w4 w5\n\nw10 w11\n");
  api_write("full", "w3 w4 w5\nw10 w11\n");
  sandbox_write("zero", "w3\nw4\0w5\n", 9);
  api_write("invalid", "w3\nw4 \xFF\n");
  api_write("long", "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3\n");
}

#endif

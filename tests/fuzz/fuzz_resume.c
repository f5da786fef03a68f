// The last checkpoint of a training, from which it goes on: progress, parameters and moments, into a model as the
// trainer has it; now and then a whole training is opened with it.
#include <string.h>

#include "base/memory.h"
#include "config/config_resume.h"
#include "fuzz/fuzz.h"
#include "make_shard.h"
#include "store/checkpoint.h"
#include "store/checkpoint_check.h"
#include "tarn/train.h"

enum { VOCAB = 12 };

static const char LAST[] = "run/checkpoint_last.safetensors";
static const char text[] =
    "model: { d_model: 4, embeddings: all, max_length: 64 }\n"
    "encoder: { layers: (R1 L1)*2 }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 4 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 4, frozen: yes, backskip: { method: predictor, refresh: 2 } }\n"
    "data: { vocab: vocab, train: train }\n"
    "train: { max_updates: 3, lr: 0.01, warmup: 2, max_tokens: 100, log_every: 1, save_every: 2, threads: 1,\n"
    "         tensorboard: no, autofreeze: 2, moments: fp8 }\n";

static tarn_config *config;
static tarn__model *model;
static void *moments;

static tarn_status train(bool resume) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = resume ? NULL : "config";
  options.run = "run";
  options.resume = resume;
  options.threads = 1;
  tarn_train *training;
  tarn_train_result result;
  tarn_status status = tarn_train_open(&training, &options);
  if (status == TARN_STATUS_OK && !resume) status = tarn_train_run(training, &result);
  tarn_train_close(&training);
  return status;
}

static void leave_model(void) {
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn__free(moments);
}

// As the trainer gives the parameters their moments.
static void take_moments(void) {
  tarn__model_size size;
  tarn__model_measure(model, &size);
  fuzz_must(tarn__alloc(&moments, TARN__MEMORY_OPTIMISER, size.optimiser_bytes, 1));
  char *next = moments;
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    const size_t bytes = tarn__model_moment_bytes(model, param);
    if (!param->trained) continue;
    param->training.moments = tarn__model_moments(model, param);
    param->training.moment1 = next;
    param->training.moment2 = next + bytes;
    next += 2 * bytes;
    if (tarn__model_sums(model, param)) param->training.grad_sum = (float *)(void *)next;
    next += tarn__model_sum_bytes(model, param);
  }
}

void fuzz_prepare(void) {
  tarn_vocab *vocab = make_vocab(VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  fuzz_write("vocab", bytes, size);
  tarn_vocab_close(&vocab);
  make_shard("train", 12, VOCAB, VOCAB, 5);
  fuzz_write("config", text, strlen(text));
  fuzz_must(train(false));
  fuzz_must(tarn_config_read(&config, "run/config.yaml", NULL, 0));
  fuzz_must(tarn__model_open(&model, config, VOCAB, VOCAB, TARN__F32, true));
  fuzz_must(tarn__model_allocate(model));
  take_moments();
  atexit(leave_model);
}

static tarn_status load(const tarn__checkpoint_file *file) {
  TARN_TRY(tarn__resume_check_config(config, file->config_text, LAST));
  TARN_TRY(tarn__checkpoint_check_names(file, model));
  return tarn__checkpoint_file_load(file, model, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn__checkpoint_file file;
  fuzz_write(LAST, data, size);
  if (!fuzz_good(tarn__checkpoint_file_open(&file, LAST))) return 0;
  const bool good = fuzz_good(load(&file));
  tarn__checkpoint_file_close(&file);
  if (good && fuzz_choice(data, size) % 64 == 0) (void)fuzz_good(train(true));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
  return fuzz_mutate_tensors(data, size, room, seed);
}

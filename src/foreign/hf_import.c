#include "foreign/hf_import.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "run/file_kind.h"
#include "store/checkpoint.h"

void tarn__hf_import_close(tarn__hf_import *import) {
  tarn__model_close(&import->model);
  tarn_config_close(&import->description);
  tarn_vocab_close(&import->vocab);
  tarn_vocab_close(&import->target_vocab);
  tarn__hf_tensors_close(&import->tensors);
}

// Weights that older models have only as pickles, which are programs: reading one would run it.
tarn_status tarn__hf_refuse_pickles(const char *folder) {
  static const char *const names[] = {
      "pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt",          "model.bin",
      "model1.pt",         "checkpoint_best.pt",           "checkpoint_last.pt"};
  static const char *const weights[] = {TARN__HF_WEIGHTS, TARN__HF_INDEX};
  char path[PATH_MAX];
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
    TARN_TRY(tarn__path_join(path, folder, weights[i]));
    if (tarn__file_exists(path)) return TARN_STATUS_OK;  // folders often hold both
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    TARN_TRY(tarn__path_join(path, folder, names[i]));
    TARN_REQUIRE(!tarn__file_exists(path), DATA,
                 "%s: there is no " TARN__HF_WEIGHTS ", and %s is " TARN__PICKLE_NAME TARN__PICKLE_ADVICE, folder,
                 names[i]);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_import_tensors(tarn__hf_import *import, const char *prefix) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, import->folder, TARN__HF_WEIGHTS));
  if (tarn__file_exists(path)) return tarn__hf_tensors_open(&import->tensors, path, prefix);
  TARN_TRY(tarn__path_join(path, import->folder, TARN__HF_INDEX));
  if (tarn__file_exists(path)) return tarn__hf_tensors_open_index(&import->tensors, path, prefix);
  TARN_TRY(tarn__hf_refuse_pickles(import->folder));
  TARN_TRY(tarn__path_join(path, import->folder, TARN__HF_WEIGHTS));
  return tarn__hf_tensors_open(&import->tensors, path, prefix);
}

tarn_status tarn__hf_import_vocab_file(tarn__hf_import *import, const char *path, int64_t size) {
  TARN_TRY(tarn_vocab_open(&import->vocab, path));
  TARN_REQUIRE(tarn_vocab_size(import->vocab) == size, DATA,
               "%s: the vocabulary has %d tokens, but %s/" TARN__HF_CONFIG " says %lld (\"vocab_size\")", path,
               tarn_vocab_size(import->vocab), import->folder, (long long)size);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_import_vocab(tarn__hf_import *import, const char **from, const char *given,
                                  const char *const files[2], const char *what, int64_t size) {
  bool found = given != NULL;
  for (int i = 0; i < 2 && !found; i++) {
    char path[PATH_MAX];
    TARN_TRY(tarn__path_join(path, import->folder, files[i]));
    found = tarn__file_exists(path);
  }
  TARN_REQUIRE(found, DATA, "%s: it has no vocabulary (%s); name one", import->folder, what);
  *from = given ? given : import->folder;
  return tarn__hf_import_vocab_file(import, *from, size);
}

tarn_status tarn__hf_import_describe(tarn__hf_import *import, const char *text, size_t length,
                                     const tarn__hf_key *keys) {
  char origin[256], name[320];
  snprintf(origin, sizeof origin, "%.200s/" TARN__HF_CONFIG, import->folder);
  if (import->settings) snprintf(origin, sizeof origin, "%.200s", import->settings);
  snprintf(name, sizeof name, "%s as a description of tarn", origin);
  return tarn__hf_name_key(tarn_config_parse(&import->description, name, text, length, NULL, 0), keys, origin);
}

tarn_status tarn__hf_import_param(tarn__param **param, const tarn__hf_import *import, const char *name) {
  const tarn__model *model = import->model;
  *param = NULL;
  for (size_t i = 0; i < model->param_count && !*param; i++)
    if (strcmp(model->params[i]->name, name) == 0) *param = model->params[i];
  TARN_REQUIRE(*param, INTERNAL, "the model has no parameter %s", name);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_import_zeros(tarn__param *param) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(param->rows * param->cols), sizeof(float)));
  const tarn_status status = tarn__param_set(param, memory);
  tarn__free(memory);
  return status;
}

// Reads a matrix that the file has as [cols, rows].
static tarn_status read_turned(const tarn__hf_import *import, float *values, const tarn__stored *tensor, int64_t rows,
                               int64_t cols) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(rows * cols), sizeof(float)));
  const float *stored = memory;
  const tarn_status status = tarn__hf_tensors_read(&import->tensors, memory, tensor, 0, (size_t)(rows * cols));
  for (int64_t r = 0; r < rows && status == TARN_STATUS_OK; r++)
    for (int64_t c = 0; c < cols; c++) values[r * cols + c] = stored[c * rows + r];
  tarn__free(memory);
  return status;
}

static bool is_turned(const tarn__hf_import *import, const tarn__param *param) {
  const char *end = strrchr(param->name, '.');
  return import->transposed && end && strcmp(end, ".weight") == 0;
}

// The values of part `i`; those of a vector are arranged as a matrix of one column.
static tarn_status read_part(const tarn__hf_import *import, const tarn__param *param, float *values,
                             const tarn__stored *tensor, int i, int64_t skipped, int64_t rows, int64_t cols) {
  const bool vector = param->rows == 1;
  TARN_TRY(tarn__hf_tensors_read(&import->tensors, values, tensor, (size_t)(skipped * cols), (size_t)(rows * cols)));
  if (!import->arrange || i >= import->arranged) return TARN_STATUS_OK;
  return import->arrange(import->arranger, param->name, values, vector ? cols : rows, vector ? rows : cols);
}

tarn_status tarn__hf_import_parts(tarn__hf_import *import, const char *ours,
                                  const tarn__stored *const tensors[TARN__HF_PARTS],
                                  const char *const names[TARN__HF_PARTS], int64_t skipped, bool set) {
  tarn__param *param;
  int parts = 0;
  void *memory = NULL;
  TARN_TRY(tarn__hf_import_param(&param, import, ours));
  while (parts < TARN__HF_PARTS && names[parts]) parts++;
  const bool vector = param->rows == 1 && parts > 1;
  const int64_t rows = vector ? 1 : param->rows / parts, cols = vector ? param->cols / parts : param->cols;
  const bool turned = is_turned(import, param);
  if (set) TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(param->rows * param->cols), sizeof(float)));
  tarn_status status = TARN_STATUS_OK;
  for (int i = 0; i < parts && status == TARN_STATUS_OK; i++) {
    float *values = set ? (float *)memory + i * rows * cols : NULL;
    if (!set)
      status = tarn__hf_tensors_check(&import->tensors, tensors[i], names[i], turned ? cols : rows + skipped,
                                      turned ? rows : cols);
    else if (turned)
      status = read_turned(import, values, tensors[i], rows, cols);
    else
      status = read_part(import, param, values, tensors[i], i, skipped, rows, cols);
  }
  if (set && status == TARN_STATUS_OK) status = tarn__param_set(param, memory);
  tarn__free(memory);
  return status;
}

tarn_status tarn__hf_import_same(const tarn__hf_import *import, const tarn__stored *tensor, const tarn__stored *first) {
  TARN_REQUIRE(tensor->bytes == first->bytes && memcmp(tensor->data, first->data, tensor->bytes) == 0, DATA,
               "%s: tensors \"%s\" and \"%s\" differ, though \"tie_word_embeddings\" of " TARN__HF_CONFIG " is true",
               import->tensors.path, tensor->name, first->name);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_import_write(tarn__hf_import *import, const char *output, int64_t vocab,
                                  const tarn__hf_import_steps *steps) {
  const tarn_vocab *target = import->target_vocab ? import->target_vocab : import->vocab;
  TARN_TRY(tarn__model_open(&import->model, import->description, vocab, tarn_vocab_size(target), TARN__F32, false));
  TARN_TRY(steps->take(steps->user, false));
  TARN_TRY(steps->check_rest(steps->user));
  TARN_TRY(tarn__model_allocate(import->model));
  if (steps->seed) TARN_TRY(tarn__model_initialise(import->model, steps->seed));
  TARN_TRY(steps->take(steps->user, true));
  TARN_TRY(tarn__hf_tensors_judge(&import->tensors, TARN_STATUS_OK));
  tarn__checkpoint_extra extra = {.source = import->vocab, .target = target};
  return tarn__checkpoint_save(output, import->model, &extra);
}

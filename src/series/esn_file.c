#include "series/esn_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/file_kind.h"

static const char FORMAT[] = TARN__SERIES_MARK;
static const char *const ACTIVATIONS[] = {[TARN_ESN_TANH] = "tanh", [TARN_ESN_RELU] = "relu"};

// Copies a tensor [rows, columns], or [rows] if columns is 0.
static tarn_status load(double *out, const tarn__safetensors *file, const char *path, const char *name, int64_t rows,
                        int64_t columns) {
  const tarn__stored *t = tarn__safetensors_find(file, name);
  TARN_REQUIRE(t, DATA, "%s: the tensor %s is missing", path, name);
  TARN_REQUIRE(strcmp(t->dtype, "F64") == 0, DATA, "%s: %s is %s, expected F64", path, name, t->dtype);
  bool fits =
      columns ? t->dims == 2 && t->shape[0] == rows && t->shape[1] == columns : t->dims == 1 && t->shape[0] == rows;
  if (columns)
    TARN_REQUIRE(fits, DATA, "%s: %s must have the shape [%" PRId64 ", %" PRId64 "]", path, name, rows, columns);
  else
    TARN_REQUIRE(fits, DATA, "%s: %s must have the shape [%" PRId64 "]", path, name, rows);
  memcpy(out, t->data, t->bytes);
  for (int64_t i = 0; i < rows * (columns ? columns : 1); i++)
    TARN_REQUIRE(isfinite(out[i]), DATA, "%s: %s has a value that is not finite", path, name);
  return TARN_STATUS_OK;
}

tarn_status tarn__esn_load_reservoir(tarn_esn *esn, const tarn__safetensors *file, const char *path) {
  int64_t n = esn->info.units;
  void *dense;
  TARN_TRY(tarn__alloc(&dense, TARN__MEMORY_OTHER, (size_t)(n * n), sizeof(double)));
  tarn_status status = load(dense, file, path, "W", n, n);
  if (status == TARN_STATUS_OK) status = tarn__sparse_from_dense(&esn->w, dense, n);
  tarn__free(dense);
  TARN_TRY(status);
  TARN_TRY(load(esn->win, file, path, "Win", n, esn->info.columns));
  if (tarn__safetensors_find(file, "bias")) TARN_TRY(load(esn->bias, file, path, "bias", n, 0));
  return TARN_STATUS_OK;
}

// --- saving

enum { TENSORS = 7, FIXED_TEXTS = 9, TEXT = 40 };

static tarn__stored matrix(const char *name, const double *data, int64_t rows, int64_t columns) {
  return (tarn__stored){name, "F64", 2, {rows, columns}, data, (size_t)(rows * columns) * sizeof *data, NULL, NULL};
}

static tarn__stored vector(const char *name, const double *data, int64_t rows) {
  return (tarn__stored){name, "F64", 1, {rows}, data, (size_t)rows * sizeof *data, NULL, NULL};
}

typedef struct saved {
  double *dense;
  tarn__stored_text *texts;  // [FIXED_TEXTS + columns]
  char (*values)[TEXT];      // [FIXED_TEXTS + columns] numbers, and keys of names
} saved;

static tarn_status saved_open(saved *s, const tarn_esn *esn) {
  size_t texts = FIXED_TEXTS + (size_t)esn->info.columns;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(esn->info.units * esn->info.units), sizeof *s->dense));
  s->dense = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, texts, sizeof *s->texts));
  s->texts = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, texts, sizeof *s->values));
  s->values = memory;
  return TARN_STATUS_OK;
}

static void write_texts(saved *s, const tarn_esn *esn) {
  const tarn_esn_info *info = &esn->info;
  const char *const keys[FIXED_TEXTS] = {"format", "activation", "lr",     "ridge", "nrmse",
                                         "rows",   "samples",    "warmup", "seed"};
  snprintf(s->values[0], TEXT, "%s", FORMAT);
  snprintf(s->values[1], TEXT, "%s", ACTIVATIONS[esn->activation]);
  const double reals[] = {esn->lr, info->ridge, info->nrmse};
  for (int i = 0; i < 3; i++) snprintf(s->values[2 + i], TEXT, "%.17g", reals[i]);
  const uint64_t numbers[] = {(uint64_t)info->rows, (uint64_t)info->samples, (uint64_t)esn->warmup, esn->seed};
  for (int i = 0; i < 4; i++) snprintf(s->values[5 + i], TEXT, "%" PRIu64, numbers[i]);
  for (int i = 0; i < FIXED_TEXTS; i++) s->texts[i] = (tarn__stored_text){keys[i], s->values[i]};
  for (int64_t c = 0; c < info->columns; c++) {
    snprintf(s->values[FIXED_TEXTS + c], TEXT, "column.%" PRId64, c);
    s->texts[FIXED_TEXTS + c] = (tarn__stored_text){s->values[FIXED_TEXTS + c], esn->names[c]};
  }
}

tarn_status tarn_esn_save(const tarn_esn *esn, const char *path) {
  saved s = {0};
  int64_t n = esn->info.units, d = esn->info.columns;
  tarn_status status = saved_open(&s, esn);
  if (status == TARN_STATUS_OK) {
    tarn__sparse_to_dense(s.dense, &esn->w);
    write_texts(&s, esn);
    const tarn__stored tensors[TENSORS] = {matrix("W", s.dense, n, n),           matrix("Win", esn->win, n, d),
                                           vector("bias", esn->bias, n),         matrix("Wout", esn->wout, n, d),
                                           vector("Wout_bias", esn->readout, d), vector("mean", esn->mean, d),
                                           vector("scale", esn->scale, d)};
    status = tarn__safetensors_write(path, tensors, TENSORS, s.texts, FIXED_TEXTS + (size_t)d);
  }
  tarn__free(s.dense);
  tarn__free(s.texts);
  tarn__free(s.values);
  return status;
}

// --- opening

static tarn_status text(const char **out, const tarn__safetensors *file, const char *path, const char *key) {
  *out = tarn__safetensors_text(file, key);
  TARN_REQUIRE(*out, DATA, "%s: the metadata lack \"%s\"", path, key);
  return TARN_STATUS_OK;
}

static tarn_status real(double *out, const tarn__safetensors *file, const char *path, const char *key, double least,
                        double most) {
  const char *word;
  char *end;
  TARN_TRY(text(&word, file, path, key));
  *out = strtod(word, &end);
  TARN_REQUIRE(*word && !*end && *out >= least && *out <= most, DATA, "%s: %s \"%.40s\" is no number from %g to %g",
               path, key, word, least, most);
  return TARN_STATUS_OK;
}

static tarn_status whole(int64_t *out, const tarn__safetensors *file, const char *path, const char *key) {
  double value;
  TARN_TRY(real(&value, file, path, key, 0, 9007199254740992.0));
  *out = (int64_t)value;
  return TARN_STATUS_OK;
}

static tarn_status open_texts(tarn_esn *esn, const tarn__safetensors *file, const char *path) {
  const char *word;
  TARN_TRY(text(&word, file, path, "activation"));
  esn->activation = strcmp(word, "relu") == 0 ? TARN_ESN_RELU : TARN_ESN_TANH;
  TARN_REQUIRE(strcmp(word, ACTIVATIONS[esn->activation]) == 0, DATA,
               "%s: the activation \"%.40s\" is neither tanh nor relu", path, word);
  TARN_TRY(real(&esn->lr, file, path, "lr", 1e-300, 1));
  TARN_TRY(real(&esn->info.ridge, file, path, "ridge", 0, INFINITY));
  TARN_TRY(real(&esn->info.nrmse, file, path, "nrmse", 0, INFINITY));
  TARN_TRY(whole(&esn->info.rows, file, path, "rows"));
  TARN_TRY(whole(&esn->info.samples, file, path, "samples"));
  TARN_TRY(whole(&esn->warmup, file, path, "warmup"));
  TARN_TRY(text(&word, file, path, "seed"));
  esn->seed = strtoull(word, NULL, 10);
  for (int64_t c = 0; c < esn->info.columns; c++) {
    char key[TEXT];
    snprintf(key, sizeof key, "column.%" PRId64, c);
    TARN_TRY(text(&word, file, path, key));
    TARN_TRY(tarn__strdup(&esn->names[c], word));
  }
  return TARN_STATUS_OK;
}

static tarn_status open_file(tarn_esn **esn, const tarn__safetensors *file, const char *path) {
  const char *format = tarn__safetensors_text(file, "format");
  TARN_REQUIRE(format && strcmp(format, FORMAT) == 0, DATA, "%s: this is no file of an echo state network", path);
  const tarn__stored *win = tarn__safetensors_find(file, "Win");
  TARN_REQUIRE(win && win->dims == 2 && win->shape[0] >= 1 && win->shape[0] <= TARN__ESN_UNITS && win->shape[1] >= 1,
               DATA, "%s: a tensor Win [units, columns] is expected", path);
  int64_t n = win->shape[0], d = win->shape[1];
  TARN_TRY(tarn__esn_new(esn, n, d));
  TARN_TRY(tarn__esn_load_reservoir(*esn, file, path));
  TARN_TRY(load((*esn)->wout, file, path, "Wout", n, d));
  TARN_TRY(load((*esn)->readout, file, path, "Wout_bias", d, 0));
  TARN_TRY(load((*esn)->mean, file, path, "mean", d, 0));
  TARN_TRY(load((*esn)->scale, file, path, "scale", d, 0));
  for (int64_t c = 0; c < d; c++)
    TARN_REQUIRE((*esn)->scale[c] > 0, DATA, "%s: scale has a value that is not above 0", path);
  (*esn)->info.edges = (*esn)->w.starts[n];
  return open_texts(*esn, file, path);
}

tarn_status tarn_esn_open(tarn_esn **esn, const char *path) {
  tarn__safetensors file;
  *esn = NULL;
  tarn_status opened = tarn__safetensors_open(&file, path);
  if (opened != TARN_STATUS_OK) return tarn__file_kind_explain(opened, path, TARN__FILE_KIND_SERIES);
  tarn_status status = tarn__map_judge(&file.map, open_file(esn, &file, path));
  tarn__safetensors_close(&file);
  if (status != TARN_STATUS_OK) tarn_esn_close(esn);
  return tarn__file_kind_explain(status, path, TARN__FILE_KIND_SERIES);
}

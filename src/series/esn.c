#include "series/esn.h"

#include <math.h>

#include "base/memory.h"

tarn_status tarn__esn_new(tarn_esn **esn, int64_t units, int64_t columns) {
  void *memory;
  *esn = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **esn));
  tarn_esn *e = *esn = memory;
  e->info.units = units;
  e->info.columns = columns;
  size_t cells = (size_t)units * (size_t)columns;
  tarn_status status =
      tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * cells + (size_t)units + 3 * (size_t)columns, sizeof(double));
  if (status == TARN_STATUS_OK) {
    e->win = memory;
    e->wout = e->win + cells;
    e->bias = e->wout + cells;
    e->readout = e->bias + units;
    e->mean = e->readout + columns;
    e->scale = e->mean + columns;
    for (int64_t c = 0; c < columns; c++) e->scale[c] = 1;
    status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)columns, sizeof *e->names);
    e->names = status == TARN_STATUS_OK ? memory : NULL;
  }
  if (status != TARN_STATUS_OK) tarn_esn_close(esn);
  return status;
}

tarn_status tarn__esn_name(tarn_esn *esn, const char *const *names) {
  for (int64_t c = 0; c < esn->info.columns; c++) TARN_TRY(tarn__strdup(&esn->names[c], names[c]));
  return TARN_STATUS_OK;
}

void tarn_esn_close(tarn_esn **esn) {
  tarn_esn *e = *esn;
  if (!e) return;
  for (int64_t c = 0; e->names && c < e->info.columns; c++) tarn__free(e->names[c]);
  tarn__free(e->names);
  tarn__free(e->win);
  tarn__sparse_close(&e->w);
  tarn__free(e);
  *esn = NULL;
}

void tarn_esn_describe(const tarn_esn *esn, tarn_esn_info *info) { *info = esn->info; }

const char *const *tarn_esn_names(const tarn_esn *esn) { return (const char *const *)esn->names; }

void tarn__esn_step(const tarn_esn *esn, double *state, const double *row, double *work) {
  int64_t units = esn->info.units, columns = esn->info.columns;
  double *sums = work, *input = work + units;
  for (int64_t c = 0; c < columns; c++) input[c] = (row[c] - esn->mean[c]) / esn->scale[c];
  tarn__sparse_product(sums, &esn->w, state);
  for (int64_t i = 0; i < units; i++) {
    double sum = sums[i] + esn->bias[i];
    for (int64_t c = 0; c < columns; c++) sum += esn->win[i * columns + c] * input[c];
    double active = esn->activation == TARN_ESN_TANH ? tanh(sum) : sum > 0 ? sum : 0 * sum;  // 0 * sum keeps a NaN
    state[i] = (1 - esn->lr) * state[i] + esn->lr * active;
  }
}

void tarn__esn_read(const tarn_esn *esn, double *row, const double *state) {
  int64_t columns = esn->info.columns;
  for (int64_t c = 0; c < columns; c++) row[c] = esn->readout[c];
  for (int64_t i = 0; i < esn->info.units; i++)
    for (int64_t c = 0; c < columns; c++) row[c] += state[i] * esn->wout[i * columns + c];
  for (int64_t c = 0; c < columns; c++) row[c] = row[c] * esn->scale[c] + esn->mean[c];
}

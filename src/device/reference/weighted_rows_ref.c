#include "ops/weighted_rows.h"

#include <string.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__weighted_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS], *y = node->out[0];
  const real *gates = node->in[TARN__WEIGHTED_GATES]->data;
  const int64_t k = ids->cols, d = y->cols;
  for (int64_t i = 0; i < y->rows * d; i++) {
    real sum = 0;
    for (int64_t j = i / d * k; j < i / d * k + k; j++) {
      const int32_t id = ((const int32_t *)ids->data)[j];
      if (id >= 0) sum += gates[j] * ((const real *)table->data)[id * d + i % d];
    }
    ((real *)y->data)[i] = sum;
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__weighted_rows_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS], *y = node->out[0];
  const tarn__tensor *dtable = node->in[TARN__WEIGHTED_TANGENT_TABLE];
  const tarn__tensor *dgates = node->in[TARN__WEIGHTED_TANGENT_GATES];
  const real *gates = node->in[TARN__WEIGHTED_GATES]->data;
  const int64_t k = ids->cols, d = y->cols, size = ids->rows * k;
  for (int64_t i = 0; i < y->rows * d; i++) {
    const int64_t row = i / d, block = row / ids->rows;
    real sum = 0;
    for (int64_t j = row * k; j < (row + 1) * k; j++) {
      const int32_t id = ((const int32_t *)ids->data)[j % size];
      if (id < 0) continue;
      if (dgates) sum += ((const real *)dgates->data)[j] * ((const real *)table->data)[id * d + i % d];
      if (dtable) sum += gates[j % size] * ((const real *)dtable->data)[(block * table->rows + id) * d + i % d];
    }
    ((real *)y->data)[i] = sum;
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__weighted_rows_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  const tarn__tensor *dy = node->in[TARN__WEIGHTED_DY];
  const real *gates = node->in[TARN__WEIGHTED_GATES]->data;
  real *dgates = node->out[TARN__WEIGHTED_DGATES] ? node->out[TARN__WEIGHTED_DGATES]->data : NULL;
  real *dtable = node->out[TARN__WEIGHTED_DTABLE] ? node->out[TARN__WEIGHTED_DTABLE]->data : NULL;
  tarn__param *param = node->dparam[0];
  const int64_t k = ids->cols, d = dy->cols;
  if (param && !tarn__param_accumulate(param)) {
    memset(param->training.grad, 0, (size_t)(param->rows * d) * sizeof(real));
    if (param->training.used_rows) memset(param->training.used_rows, 0, (size_t)param->rows);
  }
  for (int64_t j = 0; j < ids->rows * k; j++) {
    const int32_t id = ((const int32_t *)ids->data)[j];
    if (dgates) dgates[j] = 0;
    if (id >= 0 && param && param->training.used_rows) param->training.used_rows[id] = 1;
    for (int64_t c = 0; id >= 0 && c < d; c++) {
      const real g = ((const real *)dy->data)[j / k * d + c];
      if (dgates) dgates[j] += g * ((const real *)table->data)[id * d + c];
      if (dtable) dtable[id * d + c] = gates[j] * g;
      if (param) ((real *)param->training.grad)[id * d + c] += gates[j] * g;
    }
  }
  return TARN_STATUS_OK;
}

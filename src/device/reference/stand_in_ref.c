#include <string.h>

#include "device/reference/reference_kernels.h"
#include "ops/stand_in.h"

typedef TARN_REAL real;

static int64_t size_of(const tarn__tensor *tensor) { return tensor->rows * tensor->cols; }

tarn_status TARN__REF(tarn__stand_in_copy_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  memcpy(node->out[0]->data, node->in[0]->data, (size_t)size_of(node->in[0]) * sizeof(real));
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__stand_in_add_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const real *dy = node->in[0]->data, *delta = node->in[1]->data;
  const real scale = (real)((const tarn__stand_in_add_attr *)node->attr)->scale;
  real *dx = node->out[0]->data;
  for (int64_t i = 0; i < size_of(node->out[0]); i++) dx[i] = dy[i] + scale * delta[i];
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__stand_in_measure_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const real *a = node->in[0]->data, *b = node->in[1]->data;
  int64_t n = size_of(node->in[0]);
  tarn__stand_in_sums own = {0};
  for (int64_t i = 0; i < n; i++) {
    own.dot += (double)a[i] * (double)b[i];
    own.approximation += (double)a[i] * (double)a[i];
    own.truth += (double)b[i] * (double)b[i];
  }
  memcpy(node->out[TARN__STAND_IN_SUMS]->data, &own, sizeof own);
  if (!node->out[TARN__STAND_IN_ERROR]) return TARN_STATUS_OK;
  real *error = node->out[TARN__STAND_IN_ERROR]->data;
  const real factor = own.truth > 1e-30 ? (real)(2.0 / own.truth) : 0;
  for (int64_t i = 0; i < n; i++) error[i] = factor * (a[i] - b[i]);
  return TARN_STATUS_OK;
}

#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/tanh.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__tanh_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  for (int64_t i = 0; i < x->rows * x->cols; i++) ((real *)y->data)[i] = (real)tanh((double)((const real *)x->data)[i]);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__tanh_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *y = node->in[TARN__TANH_Y];
  const real *dy = node->in[TARN__TANH_DY]->data;
  real *dx = node->out[0]->data;
  for (int64_t i = 0; i < y->rows * y->cols; i++) {
    const real value = ((const real *)y->data)[i];
    dx[i] = (node->in[TARN__TANH_PREVIOUS] ? dx[i] : 0) + dy[i] * (1 - value * value);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__tanh_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *y = node->in[TARN__TANH_Y], *dx = node->in[TARN__TANH_DX];
  const int64_t size = y->rows * y->cols;
  for (int64_t i = 0; i < dx->rows * dx->cols; i++) {
    const real value = ((const real *)y->data)[i % size];
    ((real *)node->out[0]->data)[i] = ((const real *)dx->data)[i] * (1 - value * value);
  }
  return TARN_STATUS_OK;
}

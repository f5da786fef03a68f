// Plain C reference.
#include "ops/widen.h"

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__widen_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__WIDEN_X], *base = node->in[TARN__WIDEN_BASE], *y = node->out[0];
  for (int64_t r = 0; r < y->rows; r++)
    for (int64_t c = 0; c < y->cols; c++) {
      real sum = base ? ((const real *)base->data)[r * y->cols + c] : 0;
      if (c < x->cols) sum += ((const real *)x->data)[r * x->cols + c];
      ((real *)y->data)[r * y->cols + c] = sum;
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__widen_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__WIDEN_DY], *dx = node->out[0];
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t c = 0; c < dx->cols; c++) {
      real *to = (real *)dx->data + r * dx->cols + c;
      *to = (node->in[TARN__WIDEN_PREVIOUS] ? *to : 0) + ((const real *)dy->data)[r * dy->cols + c];
    }
  return TARN_STATUS_OK;
}

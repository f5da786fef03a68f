// Plain C reference. The gradient may lie in the memory of x.
#include "device/reference/reference_kernels.h"
#include "ops/glu.h"

#include <math.h>

typedef TARN_REAL real;

static real sigmoid(real x) { return (real)(1.0 / (1.0 + exp(-(double)x))); }

tarn_status TARN__REF(tarn__glu_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GLU_X], *y = node->out[0];
  const int64_t d = y->cols;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      const real *row = (const real *)x->data + 2 * r * d;
      ((real *)y->data)[r * d + c] = row[c] * sigmoid(row[d + c]);
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__glu_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GLU_X], *dy = node->in[TARN__GLU_DY], *dx = node->out[0];
  const int64_t d = dy->cols;
  const bool add = node->in[TARN__GLU_PREVIOUS] != NULL;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      const real *row = (const real *)x->data + 2 * r * d;
      real *to = (real *)dx->data + 2 * r * d;
      const real value = row[c], gate = sigmoid(row[d + c]), g = ((const real *)dy->data)[r * d + c];
      to[c] = (add ? to[c] : 0) + g * gate;
      to[d + c] = (add ? to[d + c] : 0) + g * value * gate * (1 - gate);
    }
  return TARN_STATUS_OK;
}

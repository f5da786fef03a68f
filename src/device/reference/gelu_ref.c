#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/gelu.h"

typedef TARN_REAL real;

static const double ROOT = 0.79788456080286535588, CUBE = 0.044715;  // sqrt(2 / pi)
static const double DENSITY = 0.39894228040143267794;                // 1 / sqrt(2 pi)
static const double HALF_ROOT = 0.70710678118654752440;

real TARN__REF(tarn__gelu_value)(real x, tarn__activation form) {
  const double v = (double)x;
  if (form == TARN__GELU_TANH) return (real)(0.5 * v * (1.0 + tanh(ROOT * (v + CUBE * v * v * v))));
  return (real)(0.5 * v * erfc(-HALF_ROOT * v));
}

real TARN__REF(tarn__gelu_slope)(real x, tarn__activation form) {
  const double v = (double)x;
  if (form == TARN__GELU_TANH) {
    const double t = tanh(ROOT * (v + CUBE * v * v * v));
    return (real)(0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * ROOT * (1.0 + 3.0 * CUBE * v * v));
  }
  return (real)(0.5 * erfc(-HALF_ROOT * v) + v * DENSITY * exp(-0.5 * v * v));
}

tarn_status TARN__REF(tarn__gelu_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const tarn__activation form = *(const tarn__activation *)node->attr;
  for (int64_t i = 0; i < x->rows * x->cols; i++)
    ((real *)y->data)[i] = TARN__REF(tarn__gelu_value)(((const real *)x->data)[i], form);
  return TARN_STATUS_OK;
}

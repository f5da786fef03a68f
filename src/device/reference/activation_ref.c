#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/activation.h"

typedef TARN_REAL real;

static const double ROOT = 0.79788456080286535588, CUBE = 0.044715;  // sqrt(2 / pi)
static const double DENSITY = 0.39894228040143267794;                // 1 / sqrt(2 pi)
static const double HALF_ROOT = 0.70710678118654752440;

static double sigmoid(double v) { return 1.0 / (1.0 + exp(-v)); }

// The form with tanh.
static double gelu_tanh(double v) { return tanh(ROOT * (v + CUBE * v * v * v)); }

static double value(double v, tarn__activation form) {
  switch (form) {
#define CASE(name, word, value, ...) \
  case name:                         \
    return value;
    TARN__EACH_ACTIVATION(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
  return v;
}

static double slope(double v, tarn__activation form) {
  switch (form) {
#define CASE(name, word, value, slope, ...) \
  case name:                                \
    return slope;
    TARN__EACH_ACTIVATION(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
  return 1;
}

real TARN__REF(tarn__activation_value)(real x, tarn__activation form) { return (real)value((double)x, form); }

real TARN__REF(tarn__activation_slope)(real x, tarn__activation form) { return (real)slope((double)x, form); }

tarn_status TARN__REF(tarn__activation_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dx = node->in[TARN__ACTIVATION_DX], *saved = node->in[TARN__ACTIVATION_SAVED];
  const tarn__activation form = *(const tarn__activation *)node->attr;
  const int64_t size = saved->rows * saved->cols;
  for (int64_t i = 0; i < dx->rows * dx->cols; i++)
    ((real *)node->out[0]->data)[i] =
        ((const real *)dx->data)[i] * TARN__REF(tarn__activation_slope)(((const real *)saved->data)[i % size], form);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__activation_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const tarn__activation form = *(const tarn__activation *)node->attr;
  for (int64_t i = 0; i < x->rows * x->cols; i++)
    ((real *)y->data)[i] = TARN__REF(tarn__activation_value)(((const real *)x->data)[i], form);
  return TARN_STATUS_OK;
}

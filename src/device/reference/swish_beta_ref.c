// Plain C reference.
#include "ops/swish_beta.h"

#include <math.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

static double beta_of(const tarn__node *node) {
  const tarn__tensor *beta = node->in[TARN__SWISH_BETA];
  return beta ? (double)*(const real *)beta->data : ((const tarn__swish_attr *)node->attr)->beta;
}

static double sigmoid(double z) { return 1.0 / (1.0 + exp(-z)); }

tarn_status TARN__REF(tarn__swish_beta_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const bool gated = ((const tarn__swish_attr *)node->attr)->gated;
  const tarn__tensor *y = node->out[0];
  const double beta = beta_of(node);
  for (int64_t r = 0; r < tarn__swish_rows(node, y->rows); r++)
    for (int64_t c = 0; c < y->cols; c++) {
      const real *x = (const real *)node->in[TARN__SWISH_X]->data + r * node->in[TARN__SWISH_X]->cols + c;
      const double z = (double)x[gated ? y->cols : 0], value = z * sigmoid(beta * z);
      ((real *)y->data)[r * y->cols + c] = (real)(gated ? (double)x[0] * value : value);
    }
  return TARN_STATUS_OK;
}

// y' = x' (s + beta x s (1 - s)); gated: left' right s + left right' (...).
static void push(const tarn__node *node) {
  const bool gated = ((const tarn__swish_attr *)node->attr)->gated;
  const tarn__tensor *x = node->in[TARN__SWISH_X], *moves = node->in[TARN__SWISH_DY], *y = node->out[0];
  const double beta = beta_of(node);
  for (int64_t r = 0; r < y->rows; r++)
    for (int64_t c = 0; c < y->cols; c++) {
      const real *at = (const real *)x->data + r % x->rows * x->cols + c;
      const real *by = (const real *)moves->data + r * x->cols + c;
      const double z = (double)at[gated ? y->cols : 0], s = sigmoid(beta * z);
      const double slope = (double)by[gated ? y->cols : 0] * (s + beta * z * s * (1.0 - s));
      ((real *)y->data)[r * y->cols + c] = (real)(gated ? (double)by[0] * z * s + (double)at[0] * slope : slope);
    }
}

tarn_status TARN__REF(tarn__swish_beta_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  if (((const tarn__swish_attr *)node->attr)->forward) {
    push(node);
    return TARN_STATUS_OK;
  }
  const bool gated = ((const tarn__swish_attr *)node->attr)->gated, add = node->in[TARN__SWISH_PREVIOUS] != NULL;
  const tarn__tensor *x = node->in[TARN__SWISH_X], *dy = node->in[TARN__SWISH_DY];
  const double beta = beta_of(node);
  double sum = 0;
  for (int64_t r = 0; r < tarn__swish_rows(node, dy->rows); r++)
    for (int64_t c = 0; c < dy->cols; c++) {
      const int64_t at = r * x->cols + c, right = at + (gated ? dy->cols : 0);
      const double z = (double)((const real *)x->data)[right], s = sigmoid(beta * z);
      const double g = (double)((const real *)dy->data)[r * dy->cols + c];
      const double left = gated ? (double)((const real *)x->data)[at] : 1.0;
      sum += g * left * z * z * s * (1.0 - s);
      if (!node->out[0]) continue;
      real *dx = node->out[0]->data;
      if (gated) dx[at] = (add ? dx[at] : 0) + (real)(g * z * s);
      dx[right] = (add ? dx[right] : 0) + (real)(g * left * (s + beta * z * s * (1.0 - s)));
    }
  tarn__param *param = node->dparam[0];
  real *grad = param ? param->training.grad : NULL;
  if (grad) *grad = (tarn__param_accumulate(param) ? *grad : 0) + (real)sum;
  return TARN_STATUS_OK;
}

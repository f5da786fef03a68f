#include "device/reference/reference_kernels.h"
#include "ops/activation.h"
#include "ops/linear.h"

typedef TARN_REAL real;

// Rows whose products with a row of the weight are summed together, each in its own order: waiting for the latency of
// every addition would take four times as long, and models are iterated in double (graph/tangents.h).
enum { TOGETHER = 8 };

static void products(real sums[TOGETHER], const real *x, const real *w, int64_t k, int64_t rows) {
  real sum[TOGETHER] = {0};
  if (rows == TOGETHER) {
    for (int64_t i = 0; i < k; i++)
#pragma GCC unroll 8
      for (int t = 0; t < TOGETHER; t++) sum[t] += x[t * k + i] * w[i];
  } else {
    for (int64_t t = 0; t < rows; t++)
      for (int64_t i = 0; i < k; i++) sum[t] += x[t * k + i] * w[i];
  }
  for (int t = 0; t < TOGETHER; t++) sums[t] = sum[t];
}

// Stores a sum: y, and z if the node keeps it.
static void finish(const tarn__node *node, int64_t at, real sum) {
  const tarn__activation activation = ((const tarn__linear_attr *)node->attr)->activation;
  real *y = node->out[TARN__LINEAR_Y]->data;
  if (!tarn__keeps_z(activation)) {
    y[at] = activation == TARN__RELU && sum < 0 ? 0 : sum;
    return;
  }
  if (node->out[TARN__LINEAR_Z]) ((real *)node->out[TARN__LINEAR_Z]->data)[at] = sum;
  y[at] = TARN__REF(tarn__activation_value)(sum, activation);
}

tarn_status TARN__REF(tarn__linear_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *weight = node->in[1], *bias = node->in[2];
  const int64_t k = x->cols, n = weight->rows, blocks = (x->rows + TOGETHER - 1) / TOGETHER;
  // The small products of tests are not worth starting threads.
#pragma omp parallel for schedule(static) num_threads(exec->threads) if (x->rows * k * n > 1 << 20)
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t first = block * TOGETHER, rows = x->rows - first < TOGETHER ? x->rows - first : TOGETHER;
    for (int64_t j = 0; j < n; j++) {
      real sums[TOGETHER];
      products(sums, (const real *)x->data + first * k, (const real *)weight->data + j * k, k, rows);
      for (int64_t t = 0; t < rows; t++)
        finish(node, (first + t) * n + j, bias ? sums[t] + ((const real *)bias->data)[j] : sums[t]);
    }
  }
  return TARN_STATUS_OK;
}

void TARN__REF(tarn__linear_slope)(real *dz, const real *saved, tarn__activation activation, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (activation == TARN__RELU)
      dz[i] = saved[i] > 0 ? dz[i] : 0;
    else
      dz[i] *= TARN__REF(tarn__activation_slope)(saved[i], activation);
  }
}

static void add_bias(tarn__param *bias, const tarn__tensor *dz) {
  int accumulate = tarn__param_accumulate(bias);
  for (int64_t j = 0; j < dz->cols; j++) {
    real sum = accumulate ? ((real *)bias->training.grad)[j] : 0;
    for (int64_t r = 0; r < dz->rows; r++) sum += ((const real *)dz->data)[r * dz->cols + j];
    ((real *)bias->training.grad)[j] = sum;
  }
}

tarn_status TARN__REF(tarn__linear_dz_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[0];
  const tarn__activation activation = ((const tarn__linear_attr *)node->attr)->activation;
  if (activation != TARN__IDENTITY)
    TARN__REF(tarn__linear_slope)(dy->data, node->in[1]->data, activation, dy->rows * dy->cols);
  if (node->dparam[0] != NULL) add_bias(node->dparam[0], dy);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__linear_dweight_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[0], *x = node->in[1];
  tarn__param *weight = node->dparam[0];
  int accumulate = tarn__param_accumulate(weight);
  real *dweight = weight->training.grad;
  for (int64_t j = 0; j < weight->rows; j++)
    for (int64_t i = 0; i < weight->cols; i++) {
      real sum = accumulate ? dweight[j * weight->cols + i] : 0;
      for (int64_t r = 0; r < x->rows; r++)
        sum += ((const real *)dz->data)[r * dz->cols + j] * ((const real *)x->data)[r * x->cols + i];
      dweight[j * weight->cols + i] = sum;
    }
  if (node->dparam[1] != NULL) add_bias(node->dparam[1], dz);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__linear_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[0], *weight = node->in[1], *dx = node->out[0];
  const tarn__tensor *previous = node->in[TARN__LINEAR_DX_PREVIOUS], *saved = node->in[TARN__LINEAR_DX_SAVED];
  real *out = dx->data;
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t i = 0; i < dx->cols; i++) {
      real sum = previous != NULL ? out[r * dx->cols + i] : 0;
      for (int64_t j = 0; j < dz->cols; j++)
        sum += ((const real *)dz->data)[r * dz->cols + j] * ((const real *)weight->data)[j * weight->cols + i];
      out[r * dx->cols + i] = sum;
    }
  if (saved != NULL) {
    TARN__REF(tarn__linear_slope)
    (out, saved->data, ((const tarn__linear_attr *)node->attr)->activation, dx->rows * dx->cols);
  }
  return TARN_STATUS_OK;
}

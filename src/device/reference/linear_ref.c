#include "device/reference/reference_kernels.h"
#include "ops/activation.h"
#include "ops/linear.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__linear_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__linear_attr *attr = node->attr;
  const tarn__tensor *x = node->in[0], *weight = node->in[1], *bias = node->in[2];
  int64_t k = x->cols, n = weight->rows;
  real *y = node->out[0]->data;
  real *z = node->out[1] != NULL ? node->out[1]->data : y;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t j = 0; j < n; j++) {
      const real *xr = (const real *)x->data + r * k, *w = (const real *)weight->data + j * k;
      real sum = 0;
      for (int64_t i = 0; i < k; i++) sum += xr[i] * w[i];
      if (bias != NULL) sum += ((const real *)bias->data)[j];
      if (tarn__keeps_z(attr->activation)) {
        z[r * n + j] = sum;
        y[r * n + j] = TARN__REF(tarn__activation_value)(sum, attr->activation);
      } else {
        y[r * n + j] = attr->activation == TARN__RELU && sum < 0 ? 0 : sum;
      }
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__linear_dz_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[0];
  const tarn__activation activation = ((const tarn__linear_attr *)node->attr)->activation;
  real *dz = dy->data;
  for (int64_t i = 0; activation != TARN__IDENTITY && i < dy->rows * dy->cols; i++) {
    const real saved = ((const real *)node->in[1]->data)[i];
    if (activation == TARN__RELU)
      dz[i] = saved > 0 ? dz[i] : 0;
    else
      dz[i] *= TARN__REF(tarn__activation_slope)(saved, activation);
  }
  tarn__param *bias = node->dparam[0];
  if (bias == NULL) return TARN_STATUS_OK;
  int accumulate = tarn__param_accumulate(bias);
  for (int64_t j = 0; j < dy->cols; j++) {
    real sum = accumulate ? ((real *)bias->training.grad)[j] : 0;
    for (int64_t r = 0; r < dy->rows; r++) sum += dz[r * dy->cols + j];
    ((real *)bias->training.grad)[j] = sum;
  }
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
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__linear_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[0], *weight = node->in[1], *previous = node->in[2], *dx = node->out[0];
  real *out = dx->data;
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t i = 0; i < dx->cols; i++) {
      real sum = previous != NULL ? out[r * dx->cols + i] : 0;
      for (int64_t j = 0; j < dz->cols; j++)
        sum += ((const real *)dz->data)[r * dz->cols + j] * ((const real *)weight->data)[j * weight->cols + i];
      out[r * dx->cols + i] = sum;
    }
  return TARN_STATUS_OK;
}

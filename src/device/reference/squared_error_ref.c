#include "device/reference/reference_kernels.h"
#include "ops/squared_error.h"

typedef TARN_REAL real;

static void begin_gradient(tarn__param *param) {
  if (param == NULL || tarn__param_accumulate(param)) return;
  for (int64_t i = 0; i < param->rows * param->cols; i++) ((real *)param->training.grad)[i] = 0;
}

tarn_status TARN__REF(tarn__squared_error_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__squared_error_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X], *values = node->in[TARN__SQUARED_ERROR_VALUES];
  const real *weight = node->in[TARN__SQUARED_ERROR_WEIGHT]->data, *bias = node->in[TARN__SQUARED_ERROR_BIAS]->data;
  tarn__tensor *dx = node->out[TARN__SQUARED_ERROR_DX];
  double *loss = node->out[TARN__SQUARED_ERROR_LOSS]->data;
  begin_gradient(node->dparam[0]);
  begin_gradient(node->dparam[1]);
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < x->rows; r++) {
    const real *row = (const real *)x->data + r * x->cols;
    real number = bias[0];
    for (int64_t i = 0; i < x->cols; i++) number += row[i] * weight[i];
    ((real *)node->out[TARN__SQUARED_ERROR_NUMBERS]->data)[r] = number;
    if (!values) continue;
    const real error = number - (real)tarn__squared_error_value(values, r);
    loss[0] += (double)(error * error);
    loss[1] += (double)(error * error);
    if (!dx && !node->dparam[0] && !node->dparam[1]) continue;
    const real g = (real)(2.0 * attr->grad_scale) * error;
    for (int64_t i = 0; node->dparam[0] && i < x->cols; i++) ((real *)node->dparam[0]->training.grad)[i] += g * row[i];
    if (node->dparam[1]) ((real *)node->dparam[1]->training.grad)[0] += g;
    for (int64_t i = 0; dx && i < x->cols; i++) ((real *)dx->data)[r * x->cols + i] = g * weight[i];
  }
  return TARN_STATUS_OK;
}

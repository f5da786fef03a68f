// Regression has one number per sentence, so plain C is fast enough: sums in double, in the order of the rows.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "ops/squared_error.h"

static double load(const void *data, tarn__dtype dtype, int64_t at) {
  return dtype == TARN__BF16 ? (double)tarn__bf16_to_f32(((const uint16_t *)data)[at])
                             : (double)((const float *)data)[at];
}

static void store(void *data, tarn__dtype dtype, int64_t at, double value) {
  if (dtype == TARN__BF16)
    ((uint16_t *)data)[at] = tarn__bf16_from_f32((float)value);
  else
    ((float *)data)[at] = (float)value;
}

static void begin_gradient(tarn__param *param) {
  if (param && !tarn__param_accumulate(param)) memset(param->training.grad, 0, (size_t)param->cols * sizeof(float));
}

static void row_gradients(const tarn__node *node, int64_t r, double g) {
  const tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X], *weight = node->in[TARN__SQUARED_ERROR_WEIGHT];
  tarn__tensor *dx = node->out[TARN__SQUARED_ERROR_DX];
  float *dweight = node->dparam[0] ? node->dparam[0]->training.grad : NULL;
  for (int64_t i = 0; dweight && i < x->cols; i++)
    dweight[i] = (float)((double)dweight[i] + g * load(x->data, x->dtype, r * x->cols + i));
  if (node->dparam[1]) {
    float *dbias = node->dparam[1]->training.grad;
    *dbias = (float)((double)*dbias + g);
  }
  for (int64_t i = 0; dx && i < x->cols; i++)
    store(dx->data, dx->dtype, r * x->cols + i, g * load(weight->data, weight->dtype, i));
}

tarn_status tarn__cpu_squared_error(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__squared_error_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X], *weight = node->in[TARN__SQUARED_ERROR_WEIGHT];
  const tarn__tensor *bias = node->in[TARN__SQUARED_ERROR_BIAS], *values = node->in[TARN__SQUARED_ERROR_VALUES];
  const bool wants_grad = node->out[TARN__SQUARED_ERROR_DX] || node->dparam[0] || node->dparam[1];
  double *loss = node->out[TARN__SQUARED_ERROR_LOSS]->data;
  begin_gradient(node->dparam[0]);
  begin_gradient(node->dparam[1]);
  loss[0] = 0.0;
  for (int64_t r = 0; r < x->rows; r++) {
    double number = load(bias->data, bias->dtype, 0);
    for (int64_t i = 0; i < x->cols; i++)
      number += load(x->data, x->dtype, r * x->cols + i) * load(weight->data, weight->dtype, i);
    ((float *)node->out[TARN__SQUARED_ERROR_NUMBERS]->data)[r] = (float)number;
    if (!values) continue;
    const double error = number - (double)tarn__squared_error_value(values, r);
    loss[0] += error * error;
    if (wants_grad) row_gradients(node, r, 2.0 * attr->grad_scale * error);
  }
  loss[1] = loss[0];
  return TARN_STATUS_OK;
}

#include "device/reference/reference_kernels.h"
#include "ops/scale.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__scale_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__SCALE_X], *gain = node->in[TARN__SCALE_GAIN];
  const tarn__tensor *shift = node->in[TARN__SCALE_SHIFT];
  for (int64_t i = 0; i < x->rows * x->cols; i++)
    ((real *)node->out[0]->data)[i] =
        (gain ? *(const real *)gain->data : 1) * ((const real *)x->data)[i] + (shift ? *(const real *)shift->data : 0);
  return TARN_STATUS_OK;
}

static void add_to_gradient(tarn__param *param, real sum) {
  real *grad = param ? param->training.grad : NULL;
  if (grad) *grad = (tarn__param_accumulate(param) ? *grad : 0) + sum;
}

tarn_status TARN__REF(tarn__scale_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__SCALE_DY], *x = node->in[TARN__SCALE_SAVED_X];
  const tarn__tensor *gain = node->in[TARN__SCALE_SAVED_GAIN], *dx = node->out[TARN__SCALE_DX];
  real dgain = 0, dshift = 0;
  for (int64_t i = 0; i < dy->rows * dy->cols; i++) {
    const real g = ((const real *)dy->data)[i];
    if (x) dgain += g * ((const real *)x->data)[i];
    dshift += g;
    if (!dx) continue;
    const real previous = node->in[TARN__SCALE_PREVIOUS] ? ((const real *)dx->data)[i] : 0;
    ((real *)dx->data)[i] = previous + g * *(const real *)gain->data;
  }
  add_to_gradient(node->dparam[TARN__SCALE_DGAIN], dgain);
  add_to_gradient(node->dparam[TARN__SCALE_DSHIFT], dshift);
  return TARN_STATUS_OK;
}

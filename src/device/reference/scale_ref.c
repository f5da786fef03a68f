#include "device/reference/reference_kernels.h"

#include <math.h>
#include <string.h>

#include "ops/scale.h"

typedef TARN_REAL real;

// Number `of` of the softmax of shares.
static real share_of(const tarn__tensor *shares, int64_t of) {
  const real *w = shares->data;
  real most = w[0], sum = 0;
  for (int64_t k = 1; k < shares->cols; k++) most = w[k] > most ? w[k] : most;
  for (int64_t k = 0; k < shares->cols; k++) sum += (real)exp((double)(w[k] - most));
  return (real)exp((double)(w[of] - most)) / sum;
}

static real factor_of(const tarn__node *node, const tarn__tensor *gain) {
  const tarn__scale_share_spec *share = node->attr;
  if (!gain) return 1;
  return share ? share_of(gain, share->of) : *(const real *)gain->data;
}

tarn_status TARN__REF(tarn__scale_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__SCALE_X], *gain = node->in[TARN__SCALE_GAIN];
  const tarn__tensor *shift = node->in[TARN__SCALE_SHIFT];
  const real factor = factor_of(node, gain);
  for (int64_t i = 0; i < x->rows * x->cols; i++)
    ((real *)node->out[0]->data)[i] = factor * ((const real *)x->data)[i] + (shift ? *(const real *)shift->data : 0);
  return TARN_STATUS_OK;
}

static void add_to_gradient(tarn__param *param, real sum) {
  real *grad = param ? param->training.grad : NULL;
  if (grad) *grad = (tarn__param_accumulate(param) ? *grad : 0) + sum;
}

// dshares[k] += dgain s_of ([k = of] - s_k).
static void add_to_shares(const tarn__node *node, real dgain) {
  const tarn__scale_share_spec *share = node->attr;
  tarn__param *param = node->dparam[TARN__SCALE_DGAIN];
  const tarn__tensor *shares = node->in[TARN__SCALE_SAVED_GAIN];
  real *grad = param->training.grad;
  if (!tarn__param_accumulate(param)) memset(grad, 0, (size_t)param->cols * sizeof *grad);
  const real own = share_of(shares, share->of);
  for (int64_t k = 0; k < param->cols; k++) grad[k] += dgain * own * ((k == share->of) - share_of(shares, k));
}

tarn_status TARN__REF(tarn__scale_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__SCALE_DY], *x = node->in[TARN__SCALE_SAVED_X];
  const tarn__tensor *gain = node->in[TARN__SCALE_SAVED_GAIN], *dx = node->out[TARN__SCALE_DX];
  const real factor = factor_of(node, gain);
  real dgain = 0, dshift = 0;
  for (int64_t i = 0; i < dy->rows * dy->cols; i++) {
    const real g = ((const real *)dy->data)[i];
    if (x) dgain += g * ((const real *)x->data)[i];
    dshift += g;
    if (!dx) continue;
    const real previous = node->in[TARN__SCALE_PREVIOUS] ? ((const real *)dx->data)[i] : 0;
    ((real *)dx->data)[i] = previous + g * factor;
  }
  if (node->attr && node->dparam[TARN__SCALE_DGAIN])
    add_to_shares(node, dgain);
  else
    add_to_gradient(node->dparam[TARN__SCALE_DGAIN], dgain);
  add_to_gradient(node->dparam[TARN__SCALE_DSHIFT], dshift);
  return TARN_STATUS_OK;
}

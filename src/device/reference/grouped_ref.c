#include "ops/grouped.h"

#include <string.h>

#include "device/reference/reference_kernels.h"
#include "ops/activation.h"
#include "ops/linear.h"

typedef TARN_REAL real;

// The sum of n products of elements with strides a_step and b_step.
static real dot(const real *a, int64_t a_step, const real *b, int64_t b_step, int64_t n) {
  real sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i * a_step] * b[i * b_step];
  return sum;
}

tarn_status TARN__REF(tarn__grouped_linear_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GROUPED_X], *bias = node->in[TARN__GROUPED_BIAS];
  const tarn__tensor *offsets = node->in[TARN__GROUPED_OFFSETS], *kept = node->out[TARN__LINEAR_Z];
  const tarn__activation form = *(const tarn__activation *)node->attr;
  const int32_t *offset = offsets->data;
  const int64_t m = x->cols, n = node->out[TARN__LINEAR_Y]->cols, experts = offsets->cols - 1;
  real *y = node->out[TARN__LINEAR_Y]->data;
  for (int64_t group = 0; group < experts * tarn__grouped_blocks(node); group++) {
    const int64_t e = group % experts, first = group / experts * tarn__grouped_block(node);
    for (int64_t i = (first + offset[e]) * n; i < (first + offset[e + 1]) * n; i++) {
      const int64_t row = e * n + i % n;
      real z =
          dot((const real *)x->data + i / n * m, 1, (const real *)node->in[TARN__GROUPED_WEIGHT]->data + row * m, 1, m);
      if (bias) z += ((const real *)bias->data)[row];
      if (kept) ((real *)kept->data)[i] = z;
      y[i] = form == TARN__IDENTITY ? z : TARN__REF(tarn__activation_value)(z, form);
    }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__grouped_dweight_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ], *x = node->in[TARN__GROUPED_DWEIGHT_X];
  const tarn__tensor *offsets = node->in[TARN__GROUPED_DWEIGHT_OFFSETS];
  const int32_t *offset = offsets->data;
  const int64_t experts = offsets->cols - 1, n = dz->cols, m = x->cols;
  tarn__param *weight = node->dparam[0], *bias = node->dparam[1];
  const int more_weight = weight && tarn__param_accumulate(weight), more_bias = bias && tarn__param_accumulate(bias);
  const real one = 1;
  for (int64_t row = 0; row < experts * n; row++) {
    const int64_t e = row / n, count = offset[e + 1] - offset[e];
    const real *column = (const real *)dz->data + offset[e] * n + row % n;
    for (int64_t c = 0; weight && c < m; c++) {
      real *out = (real *)weight->training.grad + row * m + c;
      *out = (more_weight ? *out : 0) + dot(column, n, (const real *)x->data + offset[e] * m + c, m, count);
    }
    if (!bias) continue;
    real *out = (real *)bias->training.grad + row;
    *out = (more_bias ? *out : 0) + dot(column, n, &one, 0, count);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__grouped_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[TARN__GROUPED_DX_DZ], *dx = node->out[0];
  const tarn__tensor *offsets = node->in[TARN__GROUPED_DX_OFFSETS];
  const int32_t *offset = offsets->data;
  const int64_t n = dz->cols, m = dx->cols;
  for (int64_t e = 0; e + 1 < offsets->cols; e++)
    for (int64_t i = offset[e] * m; i < offset[e + 1] * m; i++) {
      real *out = (real *)dx->data + i;
      *out = (node->in[TARN__GROUPED_DX_PREVIOUS] ? *out : 0) +
             dot((const real *)dz->data + i / m * n, 1,
                 (const real *)node->in[TARN__GROUPED_DX_WEIGHT]->data + e * n * m + i % m, m, n);
    }
  const tarn__tensor *saved = node->in[TARN__GROUPED_DX_SAVED];
  if (saved) {
    TARN__REF(tarn__linear_slope)
    (dx->data, saved->data, ((const tarn__linear_attr *)node->attr)->activation, offset[offsets->cols - 1] * m);
  }
  return TARN_STATUS_OK;
}

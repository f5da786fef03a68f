// Fast kernels: one pass in registers, memory-bound. The rows are divided into one part per thread; the gradients of
// the two numbers are summed row by row in each part, then over the parts in order, so that equal numbers of threads
// give equal bits.
#include "ops/scale.h"

#include <string.h>

#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/rows/scale_kernels.h"

// The sums of a part, in a cache line of their own.
typedef struct part_sums {
  _Alignas(64) double gain, shift;
} part_sums;

static size_t scratch(int threads) { return (size_t)threads * sizeof(part_sums); }

// The number that a thread computes once for its rows.
static float factor_of(const tarn__node *node, const tarn__tensor *gain) {
  const tarn__scale_share_spec *share = node->attr;
  if (!gain) return 1.0f;
  return share ? (float)tarn__share_of(gain->data, gain->cols, share->of) : *(const float *)gain->data;
}

static float number_of(const tarn__tensor *tensor, float otherwise) {
  return tensor ? *(const float *)tensor->data : otherwise;
}

TARN__VEC_INLINE void forward_row(const tarn__node *node, float gain, tarn__dtype dtype, int64_t first, int64_t last) {
  const void *x = node->in[TARN__SCALE_X]->data;
  void *y = node->out[0]->data;
  const float shift = number_of(node->in[TARN__SCALE_SHIFT], 0.0f);
#define STEP(i, n) tarn__vec_write_first(y, dtype, i, tarn__vec_read_first(x, dtype, i, n) * gain + shift, n)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

// DX of a row.
TARN__VEC_INLINE void dx_row(const tarn__node *node, float gain, tarn__dtype dtype, int64_t first, int64_t last) {
  const void *dy = node->in[TARN__SCALE_DY]->data;
  void *dx = node->out[TARN__SCALE_DX]->data;
  const bool add = node->in[TARN__SCALE_PREVIOUS] != NULL;
#define STEP(i, n)                                                                               \
  do {                                                                                           \
    const tarn__vec g = tarn__vec_read_first(dy, dtype, i, n) * gain;                            \
    tarn__vec_write_first(dx, dtype, i, add ? tarn__vec_read_first(dx, dtype, i, n) + g : g, n); \
  } while (0)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

// sum of dy x of a row, or of dy if x is NULL.
TARN__VEC_INLINE float sum_row(const void *dy, const void *x, tarn__dtype dtype, int64_t first, int64_t last) {
  tarn__vec sum = {0};
#define STEP(i, n)                                                                   \
  do {                                                                               \
    const tarn__vec g = tarn__vec_read_first(dy, dtype, i, n);                       \
    sum = x ? tarn__vec_fma(g, tarn__vec_read_first(x, dtype, i, n), sum) : sum + g; \
  } while (0)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
  return tarn__vec_sum_lanes(sum)[0];
}

// The sums come before DX, which must not overwrite any of their inputs.
TARN__VEC_INLINE void backward_part(const tarn__node *node, part_sums *sums, int64_t first_row, int64_t last_row,
                                    tarn__dtype dtype) {
  const tarn__tensor *dy = node->in[TARN__SCALE_DY], *x = node->in[TARN__SCALE_SAVED_X];
  const float gain = factor_of(node, node->in[TARN__SCALE_SAVED_GAIN]);
  for (int64_t r = first_row; r < last_row; r++) {
    const int64_t first = r * dy->cols, last = first + dy->cols;
    if (x) sums->gain += (double)sum_row(dy->data, x->data, dtype, first, last);
    if (node->dparam[TARN__SCALE_DSHIFT]) sums->shift += (double)sum_row(dy->data, NULL, dtype, first, last);
    if (node->out[TARN__SCALE_DX]) dx_row(node, gain, dtype, first, last);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  const float gain = factor_of(node, node->in[TARN__SCALE_GAIN]);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < y->rows; r++)
    if (y->dtype == TARN__BF16)
      forward_row(node, gain, TARN__BF16, r * y->cols, (r + 1) * y->cols);
    else
      forward_row(node, gain, TARN__F32, r * y->cols, (r + 1) * y->cols);
  return TARN_STATUS_OK;
}

static void add_to_gradient(tarn__param *param, double sum) {
  float *grad = param ? param->training.grad : NULL;
  if (grad) *grad = (tarn__param_accumulate(param) ? *grad : 0.0f) + (float)sum;
}

static void add_to_shares(const tarn__node *node, double dgain) {
  tarn__param *param = node->dparam[TARN__SCALE_DGAIN];
  float *grad = param->training.grad;
  if (!tarn__param_accumulate(param)) memset(grad, 0, (size_t)param->cols * sizeof *grad);
  const tarn__scale_share_spec *share = node->attr;
  tarn__shares_add(grad, node->in[TARN__SCALE_SAVED_GAIN]->data, param->cols, share->of, dgain);
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SCALE_DY];
  part_sums *sums = node->scratch;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const int64_t first = dy->rows * which / exec->threads, last = dy->rows * (which + 1) / exec->threads;
    sums[which] = (part_sums){0};
    if (dy->dtype == TARN__BF16)
      backward_part(node, &sums[which], first, last, TARN__BF16);
    else
      backward_part(node, &sums[which], first, last, TARN__F32);
  }
  double gain = 0.0, shift = 0.0;
  for (int which = 0; which < exec->threads; which++) {
    gain += sums[which].gain;
    shift += sums[which].shift;
  }
  if (node->attr && node->dparam[TARN__SCALE_DGAIN])
    add_to_shares(node, gain);
  else
    add_to_gradient(node->dparam[TARN__SCALE_DGAIN], gain);
  add_to_gradient(node->dparam[TARN__SCALE_DSHIFT], shift);
  return TARN_STATUS_OK;
}

const tarn__scale_kernels TARN__FAST(tarn__scale_kernels) = {forward, backward, scratch};

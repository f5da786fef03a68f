#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/mixing/token_linear_kernels.h"
#include "ops/token_linear.h"

enum { LANES = TARN__VEC_LANES };

// The first n lanes of the result at element `at` from z.
TARN__VEC_INLINE void finish_step(const tarn__node *node, tarn__dtype dtype, tarn__vec z, int64_t at, int64_t n) {
  const tarn__tensor *gate = node->in[TARN__TOKENS_GATE], *added = node->in[TARN__TOKENS_ADDED];
  const tarn__tensor *kept = node->out[TARN__TOKENS_Z];
  if (added) z += tarn__vec_read_first(added->data, dtype, at, n);
  if (kept) tarn__vec_write_first(kept->data, dtype, at, z, n);
  if (gate) z *= tarn__vec_read_first(gate->data, dtype, at, n);
  tarn__vec_write_first(node->out[TARN__TOKENS_Y]->data, dtype, at, z, n);
}

TARN__VEC_INLINE void finish_row(const tarn__node *node, tarn__dtype dtype, const float *z, float bias, int64_t row) {
  const int64_t d = node->out[TARN__TOKENS_Y]->cols;
#define STEP(i, n) \
  finish_step(node, dtype, tarn__vec_read_first(z, TARN__F32, i, n) + tarn__vec_all(bias), row * d + (i), n)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static void finish(const tarn__node *node, const float *z, int64_t row, int64_t first, int64_t last) {
  const tarn__tensor *y = node->out[TARN__TOKENS_Y];
  const float *bias = node->in[TARN__TOKENS_BIAS] ? node->in[TARN__TOKENS_BIAS]->data : NULL;
  for (int64_t i = first; i < last; i++)
    if (y->dtype == TARN__BF16)
      finish_row(node, TARN__BF16, z + i * y->cols, bias ? bias[i] : 0.0f, row + i);
    else
      finish_row(node, TARN__F32, z + i * y->cols, bias ? bias[i] : 0.0f, row + i);
}

static void lower(void *out, const tarn__tensor *weight, int64_t n, int64_t first, int64_t last) {
  const size_t size = tarn__dtype_size(weight->dtype);
  for (int64_t i = first; i < last; i++) {
    char *row = (char *)out + (size_t)(i * n) * size;
    memcpy(row, (const char *)weight->data + (size_t)(i * weight->cols) * size, (size_t)(i + 1) * size);
    memset(row + (size_t)(i + 1) * size, 0, (size_t)(n - i - 1) * size);
  }
}

TARN__VEC_INLINE void gate_step(const tarn__node *node, tarn__dtype dtype, int64_t at, int64_t n) {
  const tarn__tensor *dgate = node->out[TARN__TOKENS_DGATE];
  const tarn__vec dy = tarn__vec_read_first(node->in[TARN__TOKENS_DX_DY]->data, dtype, at, n);
  const tarn__vec gate = tarn__vec_read_first(node->in[TARN__TOKENS_DX_GATE]->data, dtype, at, n);
  if (dgate) {
    tarn__vec g = dy * tarn__vec_read_first(node->in[TARN__TOKENS_DX_Z]->data, dtype, at, n);
    if (node->in[TARN__TOKENS_DX_PREVIOUS_GATE]) g += tarn__vec_read_first(dgate->data, dtype, at, n);
    tarn__vec_write_first(dgate->data, dtype, at, g, n);
  }
  tarn__vec_write_first(node->out[TARN__TOKENS_DZ]->data, dtype, at, dy * gate, n);
}

static void through_gate(const tarn__node *node, int64_t first, int64_t last) {
  const tarn__tensor *dy = node->in[TARN__TOKENS_DX_DY];
  const int64_t begin = first * dy->cols, end = last * dy->cols;
#define HALF(i, n) gate_step(node, TARN__BF16, i, n)
#define FULL(i, n) gate_step(node, TARN__F32, i, n)
  if (dy->dtype == TARN__BF16)
    TARN__VEC_EACH(begin, end, HALF);
  else
    TARN__VEC_EACH(begin, end, FULL);
#undef HALF
#undef FULL
}

static void sum_rows(float *sums, const tarn__tensor *x, int64_t first, int64_t last) {
  for (int64_t r = first; r < last; r++) {
    tarn__vec sum = {0};
#define STEP(i, n) sum += tarn__vec_read_first(x->data, x->dtype, r * x->cols + (i), n)
    TARN__VEC_EACH(0, x->cols, STEP);
#undef STEP
    sums[r - first] += tarn__vec_sum_lanes(sum)[0];
  }
}

// `registers` registers of row r of the result from column c on, the last of them with n lanes.
TARN__VEC_INLINE void step_columns(const tarn__node *node, tarn__dtype dtype, const float *weights, const int32_t *list,
                                   int64_t count, float bias, int64_t r, int64_t c, int registers, int64_t n) {
  const tarn__tensor *x = node->in[TARN__TOKENS_X];
  const int64_t column = ((const tarn__token_attr *)node->attr)->column + c, d = node->out[0]->cols;
  tarn__vec sum[4] = {{0}};
  for (int64_t k = 0; k < count; k++) {
    const int64_t at = list[k] * x->cols + column;
#pragma GCC unroll 4
    for (int v = 0; v < registers; v++)
      sum[v] = tarn__vec_axpy(weights[k], tarn__vec_read_first(x->data, dtype, at + v * LANES, n), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < registers; v++) finish_step(node, dtype, sum[v] + tarn__vec_all(bias), r * d + c + v * LANES, n);
}

TARN__VEC_INLINE void step_row(const tarn__node *node, tarn__dtype dtype, const float *weights, const int32_t *list,
                               int64_t count, int64_t r) {
  const float bias = ((const float *)node->in[TARN__TOKENS_BIAS]->data)[count - 1];
  const int64_t d = node->out[0]->cols;
  int64_t c = 0;
  for (; c + 4 * LANES <= d; c += 4 * LANES) step_columns(node, dtype, weights, list, count, bias, r, c, 4, LANES);
  for (; c + LANES <= d; c += LANES) step_columns(node, dtype, weights, list, count, bias, r, c, 1, LANES);
  if (c < d) step_columns(node, dtype, weights, list, count, bias, r, c, 1, d - c);
}

static void step(const tarn__node *node, int64_t first, int64_t last, float *weights) {
  const tarn__tensor *weight = node->in[TARN__TOKENS_WEIGHT];
  const int32_t *list = node->in[TARN__TOKENS_ROWS]->data, *range = node->in[TARN__TOKENS_RANGES]->data;
  for (int64_t r = first; r < last; r++) {
    const int64_t count = range[2 * r + 1] - range[2 * r];
    tarn__row_copy(weights, weight->data, weight->dtype, (count - 1) * weight->cols, count);
    if (weight->dtype == TARN__BF16)
      step_row(node, TARN__BF16, weights, list + range[2 * r], count, r);
    else
      step_row(node, TARN__F32, weights, list + range[2 * r], count, r);
  }
}

const tarn__token_linear_kernels TARN__FAST(tarn__token_linear_kernels) = {finish, lower, through_gate, sum_rows, step};

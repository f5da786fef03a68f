// Fast kernels: one pass in registers, memory-bound. The rows are divided into one part per thread; the gradient of
// beta is summed row by row in each part, then over the parts in order, so that equal numbers of threads give equal
// bits.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/rows/swish_beta_kernels.h"
#include "ops/swish_beta.h"

// The sum of a part, in a cache line of its own.
typedef struct part_sum {
  _Alignas(64) double beta;
} part_sum;

static size_t scratch(int threads) { return (size_t)threads * sizeof(part_sum); }

static float beta_of(const tarn__node *node) {
  const tarn__tensor *beta = node->in[TARN__SWISH_BETA];
  return beta ? *(const float *)beta->data : (float)((const tarn__swish_attr *)node->attr)->beta;
}

// A row of the result, [d].
TARN__VEC_INLINE void forward_row(const tarn__node *node, tarn__dtype dtype, float beta, bool gated, int64_t d,
                                  int64_t r) {
  const void *x = node->in[TARN__SWISH_X]->data;
  const int64_t left = gated ? 2 * r * d : r * d, right = gated ? left + d : left;
#define STEP(c, n)                                                      \
  do {                                                                  \
    const tarn__vec z = tarn__vec_read_first(x, dtype, right + (c), n); \
    tarn__vec y = z * tarn__vec_sigmoid(z * beta);                      \
    if (gated) y *= tarn__vec_read_first(x, dtype, left + (c), n);      \
    tarn__vec_write_first(node->out[0]->data, dtype, r *d + (c), y, n); \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

// Returns the row's contribution to the gradient of beta.
TARN__VEC_INLINE float backward_row(const tarn__node *node, tarn__dtype dtype, float beta, bool gated, int64_t d,
                                    int64_t r) {
  const void *x = node->in[TARN__SWISH_X]->data, *dy = node->in[TARN__SWISH_DY]->data;
  void *dx = node->out[0] ? node->out[0]->data : NULL;
  const bool add = node->in[TARN__SWISH_PREVIOUS] != NULL;
  const int64_t left = gated ? 2 * r * d : r * d, right = gated ? left + d : left;
  tarn__vec sum = {0};
#define STEP(c, n)                                                                                       \
  do {                                                                                                   \
    const tarn__vec z = tarn__vec_read_first(x, dtype, right + (c), n), s = tarn__vec_sigmoid(z * beta); \
    const tarn__vec g = tarn__vec_read_first(dy, dtype, r * d + (c), n), bend = z * s * (1.0f - s);      \
    const tarn__vec down = gated ? g * tarn__vec_read_first(x, dtype, left + (c), n) : g;                \
    sum = tarn__vec_fma(down * z, bend, sum);                                                            \
    if (!dx) break;                                                                                      \
    tarn__vec dright = down * tarn__vec_axpy(beta, bend, s), dleft = g * (z * s);                        \
    if (add) dright += tarn__vec_read_first(dx, dtype, right + (c), n);                                  \
    if (add && gated) dleft += tarn__vec_read_first(dx, dtype, left + (c), n);                           \
    if (gated) tarn__vec_write_first(dx, dtype, left + (c), dleft, n);                                   \
    tarn__vec_write_first(dx, dtype, right + (c), dright, n);                                            \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
  return tarn__vec_sum_lanes(sum)[0];
}

// Row r of a tangent of the result.
TARN__VEC_INLINE void tangent_row(const tarn__node *node, tarn__dtype dtype, float beta, bool gated, int64_t d,
                                  int64_t r) {
  const void *x = node->in[TARN__SWISH_X]->data, *moves = node->in[TARN__SWISH_DY]->data;
  const int64_t width = gated ? 2 * d : d, at = r % node->in[TARN__SWISH_X]->rows * width, right = gated ? d : 0;
#define STEP(c, n)                                                                                                \
  do {                                                                                                            \
    const tarn__vec z = tarn__vec_read_first(x, dtype, at + right + (c), n);                                      \
    const tarn__vec s = tarn__vec_sigmoid(z * beta), bend = z * s * (1.0f - s);                                   \
    tarn__vec y = tarn__vec_read_first(moves, dtype, r * width + right + (c), n) * tarn__vec_axpy(beta, bend, s); \
    if (gated)                                                                                                    \
      y = tarn__vec_fma(tarn__vec_read_first(moves, dtype, r * width + (c), n), z * s,                            \
                        y * tarn__vec_read_first(x, dtype, at + (c), n));                                         \
    tarn__vec_write_first(node->out[0]->data, dtype, r *d + (c), y, n);                                           \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static tarn_status push(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows, d = node->out[0]->cols;
  const bool half = node->out[0]->dtype == TARN__BF16, gated = ((const tarn__swish_attr *)node->attr)->gated;
  const float beta = beta_of(node);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++)
    half ? tangent_row(node, TARN__BF16, beta, gated, d, r) : tangent_row(node, TARN__F32, beta, gated, d, r);
  return TARN_STATUS_OK;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = tarn__swish_rows(node, node->out[0]->rows), d = node->out[0]->cols;
  const bool half = node->out[0]->dtype == TARN__BF16, gated = ((const tarn__swish_attr *)node->attr)->gated;
  const float beta = beta_of(node);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++)
    if (gated)
      half ? forward_row(node, TARN__BF16, beta, true, d, r) : forward_row(node, TARN__F32, beta, true, d, r);
    else
      half ? forward_row(node, TARN__BF16, beta, false, d, r) : forward_row(node, TARN__F32, beta, false, d, r);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  if (((const tarn__swish_attr *)node->attr)->forward) return push(exec, node);
  const tarn__tensor *dy = node->in[TARN__SWISH_DY];
  const bool half = dy->dtype == TARN__BF16, gated = ((const tarn__swish_attr *)node->attr)->gated;
  const float beta = beta_of(node);
  const int64_t rows = tarn__swish_rows(node, dy->rows), d = dy->cols;
  part_sum *sums = node->scratch;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const int64_t first = rows * which / exec->threads, last = rows * (which + 1) / exec->threads;
    double sum = 0.0;
    for (int64_t r = first; r < last; r++)
      if (gated)
        sum += (double)(half ? backward_row(node, TARN__BF16, beta, true, d, r)
                             : backward_row(node, TARN__F32, beta, true, d, r));
      else
        sum += (double)(half ? backward_row(node, TARN__BF16, beta, false, d, r)
                             : backward_row(node, TARN__F32, beta, false, d, r));
    sums[which] = (part_sum){sum};
  }
  tarn__param *param = node->dparam[0];
  if (!param) return TARN_STATUS_OK;
  double all = 0.0;
  for (int which = 0; which < exec->threads; which++) all += sums[which].beta;
  float *grad = param->training.grad;
  *grad = (tarn__param_accumulate(param) ? *grad : 0.0f) + (float)all;
  return TARN_STATUS_OK;
}

const tarn__swish_kernels TARN__FAST(tarn__swish_kernels) = {forward, backward, scratch};

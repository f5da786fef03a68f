// Fast kernels of the tangents of the output layer: a row of a direction is read twice, first for its mean weighted by
// probabilities. Exponentials of the forward row are recomputed for each direction, which costs less than storing them.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "ops/output_tangent.h"
#include "ops/squared_error.h"

typedef struct means {
  double weighed, plain;  // weighted by probabilities; unweighted
} means;

TARN__VEC_INLINE means means_of(const float *d, const float *log_p, int64_t words) {
  tarn__vec weighed = {0}, plain = {0};
#define STEP(j, n)                                                                                                  \
  do {                                                                                                              \
    const tarn__vec x = tarn__vec_read_first(d, TARN__F32, j, n);                                                   \
    weighed = tarn__vec_fma(tarn__vec_exp2(tarn__vec_read_first(log_p, TARN__F32, j, n) * 1.44269504088896341f), x, \
                            weighed);                                                                               \
    plain += x;                                                                                                     \
  } while (0)
  TARN__VEC_EACH(0, words, STEP);
#undef STEP
  return (means){(double)tarn__vec_sum_lanes(weighed)[0], (double)tarn__vec_sum_lanes(plain)[0] / (double)words};
}

// Row `row` of the directions.
static void push_row(const tarn__node *node, int64_t row) {
  const tarn__tensor *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const int64_t words = saved->cols;
  const float *d = (const float *)node->in[TARN__OUTPUT_TANGENT_D]->data + row * words;
  const means m = means_of(d, (const float *)saved->data + row % saved->rows * words, words);
  float *out = (float *)node->out[TARN__OUTPUT_TANGENT_RESULT]->data + row * words;
  const tarn__vec mean = tarn__vec_all((float)m.weighed);
#define STEP(j, n) tarn__vec_write_first(out, TARN__F32, j, tarn__vec_read_first(d, TARN__F32, j, n) - mean, n)
  TARN__VEC_EACH(0, words, STEP);
#undef STEP
}

// Both losses of a row.
static void loss_of(double loss[2], const tarn__node *node, int64_t row) {
  const tarn__tensor *saved = node->in[TARN__OUTPUT_TANGENT_SAVED], *targets = node->in[TARN__OUTPUT_TANGENT_TARGETS];
  const double smoothing = ((const tarn__output_tangent_attr *)node->attr)->smoothing;
  const int64_t words = saved->cols, r = row % saved->rows;
  const float *d = (const float *)node->in[TARN__OUTPUT_TANGENT_D]->data + row * words;
  const means m = means_of(d, (const float *)saved->data + r * words, words);
  loss[1] = m.weighed - (double)d[((const int32_t *)targets->data)[r]];
  loss[0] = (1.0 - smoothing) * loss[1] + smoothing * (m.weighed - m.plain);
}

static void square_of(double loss[2], const tarn__node *node, int64_t row) {
  const tarn__tensor *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const int64_t r = row % saved->rows;
  const double value = (double)tarn__squared_error_value(node->in[TARN__OUTPUT_TANGENT_TARGETS], r);
  loss[0] = loss[1] = 2.0 * ((double)((const float *)saved->data)[r] - value) *
                      (double)((const float *)node->in[TARN__OUTPUT_TANGENT_D]->data)[row];
}

static int64_t form_of(const tarn__node *node) { return ((const tarn__output_tangent_attr *)node->attr)->form; }

// Both losses of all rows of all directions, unless they are an output.
static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  if (form_of(node) == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES || node->out[TARN__OUTPUT_TANGENT_ROWS]) return 0;
  return (size_t)node->in[TARN__OUTPUT_TANGENT_D]->rows * 2 * sizeof(double);
}

static tarn_status run(const tarn__exec *exec, const tarn__node *node) {
  const int64_t form = form_of(node), rows = node->in[TARN__OUTPUT_TANGENT_D]->rows;
  const tarn__tensor *result = node->out[TARN__OUTPUT_TANGENT_RESULT], *kept = node->out[TARN__OUTPUT_TANGENT_ROWS];
  double *losses = kept ? kept->data : node->scratch;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t row = 0; row < rows; row++)
    if (form == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES)
      push_row(node, row);
    else if (form == TARN__OUTPUT_TANGENT_LOSS)
      loss_of(losses + 2 * row, node, row);
    else
      square_of(losses + 2 * row, node, row);
  if (form == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES) return TARN_STATUS_OK;
  double *sums = result->data;
  for (int64_t i = 0; i < 2 * result->rows; i++) sums[i] = 0.0;
  for (int64_t row = 0; row < rows; row++)
    for (int i = 0; i < 2; i++) sums[2 * (row / (rows / result->rows)) + i] += losses[2 * row + i];
  return TARN_STATUS_OK;
}

const tarn__output_tangent_kernels TARN__FAST(tarn__output_tangent_kernels) = {run, scratch};

#include "ops/output_tangent.h"

#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/squared_error.h"

typedef TARN_REAL real;

static const real *values(const tarn__tensor *tensor) { return tensor->data; }

// The mean of d over the words of a row, weighted by their probabilities.
static double mean_of(const real *d, const real *log_p, int64_t words) {
  double sum = 0.0;
  for (int64_t j = 0; j < words; j++) sum += exp((double)log_p[j]) * (double)d[j];
  return sum;
}

static void log_probabilities(const tarn__node *node) {
  const tarn__tensor *d = node->in[TARN__OUTPUT_TANGENT_D], *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const int64_t words = saved->cols;
  for (int64_t row = 0; row < d->rows; row++) {
    const real *own = values(d) + row * words;
    const double mean = mean_of(own, values(saved) + row % saved->rows * words, words);
    real *out = (real *)node->out[TARN__OUTPUT_TANGENT_RESULT]->data + row * words;
    for (int64_t j = 0; j < words; j++) out[j] = (real)((double)own[j] - mean);
  }
}

// Adds both losses of row `row` for all directions.
static void add_losses(double sums[2], const tarn__node *node, int64_t row) {
  const tarn__tensor *d = node->in[TARN__OUTPUT_TANGENT_D], *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const tarn__tensor *rows = node->out[TARN__OUTPUT_TANGENT_ROWS];
  const double smoothing = ((const tarn__output_tangent_attr *)node->attr)->smoothing;
  const int64_t words = saved->cols, r = row % saved->rows;
  const real *own = values(d) + row * words;
  const double mean = mean_of(own, values(saved) + r * words, words);
  double all = 0.0;
  for (int64_t j = 0; j < words; j++) all += (double)own[j] / (double)words;
  const double nll = mean - (double)own[((const int32_t *)node->in[TARN__OUTPUT_TANGENT_TARGETS]->data)[r]];
  const double smoothed = (1.0 - smoothing) * nll + smoothing * (mean - all);
  sums[0] += smoothed;
  sums[1] += nll;
  if (!rows) return;
  ((double *)rows->data)[2 * row] = smoothed;
  ((double *)rows->data)[2 * row + 1] = nll;
}

static void add_squares(double sums[2], const tarn__node *node, int64_t row) {
  const tarn__tensor *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const int64_t r = row % saved->rows;
  const double value = (double)tarn__squared_error_value(node->in[TARN__OUTPUT_TANGENT_TARGETS], r);
  const double moved = 2.0 * ((double)values(saved)[r] - value) * (double)values(node->in[TARN__OUTPUT_TANGENT_D])[row];
  sums[0] += moved;
  sums[1] += moved;
}

tarn_status TARN__REF(tarn__output_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const int64_t form = ((const tarn__output_tangent_attr *)node->attr)->form;
  const tarn__tensor *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  if (form == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES) {
    log_probabilities(node);
    return TARN_STATUS_OK;
  }
  double *out = node->out[TARN__OUTPUT_TANGENT_RESULT]->data;
  for (int64_t k = 0; k < node->out[TARN__OUTPUT_TANGENT_RESULT]->rows; k++) {
    double sums[2] = {0.0, 0.0};
    for (int64_t row = k * saved->rows; row < (k + 1) * saved->rows; row++)
      if (form == TARN__OUTPUT_TANGENT_LOSS)
        add_losses(sums, node, row);
      else
        add_squares(sums, node, row);
    out[2 * k] = sums[0];
    out[2 * k + 1] = sums[1];
  }
  return TARN_STATUS_OK;
}

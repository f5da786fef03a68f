#include "ops/output.h"
#include "ops/row_cpu.h"

// The gradient is made in pieces that stay in L1.
enum { PIECE = 512 };

// sum of (x - shift)
static float sum_from(const float *x, float shift, int64_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += x[i] - shift;
  return sum;
}

// (p - smoothing / V - (1 - smoothing) [j = target]) * scale, where p = e / sum
static void gradient(void *dlogits, float *e, float sum, const tarn__output_row *row) {
  TARN__ROW_ALIGNED float piece[PIECE];
  float factor = row->scale / sum, base = (float)(row->scale * row->smoothing / (double)row->words);
  e[row->target] -= (float)((1.0 - row->smoothing) * (double)sum);
  for (int64_t first = 0; first < row->words; first += PIECE) {
    int64_t n = row->words - first < PIECE ? row->words - first : PIECE;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) piece[i] = e[first + i] * factor - base;
    if (row->sums != NULL) tarn__row_add(row->sums + first, piece, n);
    tarn__row_write(dlogits, row->dtype, first, n, piece);
  }
}

static void loss(float *logits, void *dlogits, double result[2], const tarn__output_row *row) {
  float most = tarn__row_max(logits, row->words);
  double target = (double)(logits[row->target] - most);
  double all = row->smoothing > 0.0 ? (double)sum_from(logits, most, row->words) / (double)row->words : 0.0;
  float sum = tarn__row_exp_sum(logits, logits, most, row->words);
  double log_sum = log((double)sum);
  result[1] = log_sum - target;
  result[0] = (1.0 - row->smoothing) * result[1] + row->smoothing * (log_sum - all);
  if (row->wants_grad) gradient(dlogits, logits, sum, row);
}

static void log_softmax(float *logits, int64_t words) {
  float most = tarn__row_max(logits, words), sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < words; i++) sum += tarn__row_exp(logits[i] - most);
  float shift = most + (float)log((double)sum);
#pragma omp simd
  for (int64_t i = 0; i < words; i++) logits[i] -= shift;
}

const tarn__output_kernels TARN__FAST(tarn__output_kernels) = {.loss = loss, .log_softmax = log_softmax};

// A row of logits is read from the last-level cache once: it is processed in pieces that stay in L1 between their
// maximum and their exponentials, which are relative to the largest logit so far (Milakov and Gimelshein 2018) and
// overwrite the logits. The gradient needs one factor per piece.
#include "device/cpu/output/output_kernels.h"
#include "ops/output.h"

#include <float.h>
#include <math.h>

#include "device/cpu/isa/vec_cpu.h"

enum { LANES = TARN__VEC_LANES, PIECE = 512, MAX_PIECES = 64 };

typedef struct reduced {
  float most;               // largest logit
  double sum, total;        // of exp(logit - most), and of the logits
  int64_t piece;            // elements of a piece, except the last one
  float shift[MAX_PIECES];  // subtracted from the logits of a piece
} reduced;

// The first n lanes from element i on, for n = LANES or less. Each loop below consists of such steps.
TARN__VEC_INLINE tarn__vec largest_step(const float *x, tarn__vec most, int64_t i, int64_t n) {
  const tarn__vec v = tarn__vec_read_first(x, TARN__F32, i, n);
  return tarn__vec_max(most, n == LANES ? v : tarn__vec_first(v, n, -FLT_MAX));
}

TARN__VEC_INLINE float largest(const float *x, float least, int64_t n) {
  tarn__vec most = tarn__vec_all(least);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) most = largest_step(x, most, i, LANES);
  if (i < n) most = largest_step(x, most, i, n - i);
  return tarn__vec_max_lane(most)[0];
}

typedef struct sums {
  tarn__vec e, x;
} sums;

TARN__VEC_INLINE void exponential_step(sums *s, float *x, float shift, bool keep, int64_t i, int64_t n) {
  const tarn__vec v = tarn__vec_read_first(x, TARN__F32, i, n);
  tarn__vec e = tarn__vec_exp2((v - shift) * 1.44269504088896341f);
  if (n < LANES) e = tarn__vec_first(e, n, 0.0f);
  if (keep) tarn__vec_write_first(x, TARN__F32, i, e, n);
  s->e += e;
  s->x += v;
}

// keep: the exponentials overwrite the logits. A logit that is not finite makes the sum NaN.
TARN__VEC_INLINE void reduce(reduced *r, float *x, int64_t words, bool keep) {
  r->most = -FLT_MAX;
  r->sum = r->total = 0.0;
  r->piece = PIECE;
  while (r->piece * MAX_PIECES < words) r->piece *= 2;
  for (int64_t first = 0, p = 0; first < words; first += r->piece, p++) {
    const int64_t n = words - first < r->piece ? words - first : r->piece;
    float *from = x + first;
    const float most = largest(from, -FLT_MAX, n);
    if (most > r->most) {
      r->sum *= exp((double)r->most - (double)most);
      r->most = most;
    }
    r->shift[p] = r->most;
    sums s = {{0}, {0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) exponential_step(&s, from, r->most, keep, i, LANES);
    if (i < n) exponential_step(&s, from, r->most, keep, i, n - i);
    r->sum += (double)tarn__vec_sum_lanes(s.e)[0];
    r->total += (double)tarn__vec_sum_lanes(s.x)[0];
  }
}

TARN__VEC_INLINE void gradient_step(uint16_t *dlogits, const float *e, float *sum, float factor, float base, int64_t i,
                                    int64_t n) {
  const tarn__vec g = tarn__vec_axpy(factor, tarn__vec_read_first(e, TARN__F32, i, n), tarn__vec_all(-base));
  if (sum) tarn__vec_write_first(sum, TARN__F32, i, tarn__vec_read_first(sum, TARN__F32, i, n) + g, n);
  tarn__vec_write_first(dlogits, TARN__BF16, i, g, n);
}

// (p - smoothing / V - (1 - smoothing) [j = target]) * scale, where p = e / sum, e relative to the largest logit
TARN__VEC_INLINE void gradient(uint16_t *dlogits, const float *e, const reduced *r, const tarn__output_row *row) {
  const float base = (float)(row->scale * row->smoothing / (double)row->words);
  const float wanted = (float)((1.0 - row->smoothing) * row->scale);
  float target = 0.0f;
  for (int64_t first = 0, p = 0; first < row->words; first += r->piece, p++) {
    const int64_t end = row->words - first < r->piece ? row->words : first + r->piece;
    const float factor = (float)(row->scale * exp((double)r->shift[p] - (double)r->most) / r->sum);
    if (row->target >= first && row->target < end) target = tarn__fma(e[row->target], factor, -base) - wanted;
    int64_t i = first;
    for (; i + LANES <= end; i += LANES) gradient_step(dlogits, e, row->sums, factor, base, i, LANES);
    if (i < end) gradient_step(dlogits, e, row->sums, factor, base, i, end - i);
  }
  dlogits[row->target] = tarn__bf16_from_f32(target);
  if (row->sums) row->sums[row->target] -= wanted;
}

static void loss(float *logits, uint16_t *dlogits, double result[2], const tarn__output_row *row) {
  const double target = (double)logits[row->target];
  reduced r;
  row->wants_grad ? reduce(&r, logits, row->words, true) : reduce(&r, logits, row->words, false);
  const double log_sum = log(r.sum) + (double)r.most;
  result[1] = log_sum - target;
  result[0] = (1.0 - row->smoothing) * result[1];
  if (row->smoothing > 0.0)
    result[0] = tarn__fma_double(row->smoothing, log_sum - r.total / (double)row->words, result[0]);
  if (row->wants_grad) gradient(dlogits, logits, &r, row);
}

static void log_softmax(float *logits, int64_t words) {
  reduced r;
  reduce(&r, logits, words, false);
  const float shift = (float)(log(r.sum) + (double)r.most);
#pragma omp simd
  for (int64_t i = 0; i < words; i++) logits[i] -= shift;
}

const tarn__output_kernels TARN__FAST(tarn__output_kernels) = {.loss = loss, .log_softmax = log_softmax};

// Probabilities of words are summed relative to the most likely softmax of each word, so that none underflows, however
// far apart logits are. Logarithms are taken of products of such sums, which are between 1 and the number of softmaxes.
#include "device/cpu/output/output_mixture_kernels.h"

#include <float.h>
#include <math.h>

#include "device/cpu/isa/vec_cpu.h"

enum { LANES = TARN__VEC_LANES, PIECE = 512, MOST = TARN__MIXTURES_MOST };

// For a row: the log of each softmax's sum of exponentials, the same minus the log of its prior, and the log of its
// prior.
typedef struct parts {
  float log_sum[MOST], shift[MOST];
  double log_sums[MOST], log_prior[MOST];
} parts;

static const float to_base_2 = 1.44269504088896341f;

// The first n lanes from element i on, for n = LANES or less. Each loop below consists of such steps.
TARN__VEC_INLINE tarn__vec read_step(const float *x, int64_t i, int64_t n) {
  return tarn__vec_read_first(x, TARN__F32, i, n);
}

TARN__VEC_INLINE tarn__vec largest_step(tarn__vec most, const float *x, int64_t i, int64_t n) {
  const tarn__vec v = read_step(x, i, n);
  return tarn__vec_max(most, n == LANES ? v : tarn__vec_first(v, n, -FLT_MAX));
}

TARN__VEC_INLINE tarn__vec sum_step(tarn__vec sum, const float *x, float most, int64_t i, int64_t n) {
  const tarn__vec e = tarn__vec_exp2((read_step(x, i, n) - most) * to_base_2);
  return sum + (n == LANES ? e : tarn__vec_first(e, n, 0.0f));
}

// A logit that is not finite makes it NaN.
static double log_sum_of(const float *x, int64_t words) {
  tarn__vec largest = tarn__vec_all(-FLT_MAX);
  int64_t i = 0;
  for (; i + LANES <= words; i += LANES) largest = largest_step(largest, x, i, LANES);
  if (i < words) largest = largest_step(largest, x, i, words - i);
  const float most = tarn__vec_max_lane(largest)[0];
  double sum = 0.0;
  for (int64_t first = 0; first < words; first += PIECE) {
    const int64_t end = words - first < PIECE ? words : first + PIECE;
    tarn__vec part = {0};
    for (i = first; i + LANES <= end; i += LANES) part = sum_step(part, x, most, i, LANES);
    if (i < end) part = sum_step(part, x, most, i, end - i);
    sum += (double)tarn__vec_sum_lanes(part)[0];
  }
  return (double)most + log(sum);
}

static void find_parts(parts *p, const float *logits, const tarn__mixture_row *row) {
  double most = -INFINITY, sum = 0.0;
  for (int64_t k = 0; k < row->mixtures; k++) most = (double)row->prior[k] > most ? (double)row->prior[k] : most;
  for (int64_t k = 0; k < row->mixtures; k++) sum += exp((double)row->prior[k] - most);
  for (int64_t k = 0; k < row->mixtures; k++) {
    p->log_prior[k] = (double)row->prior[k] - most - log(sum);
    p->log_sums[k] = log_sum_of(logits + k * row->words, row->words);
    p->log_sum[k] = (float)p->log_sums[k];
    p->shift[k] = (float)(p->log_prior[k] - p->log_sums[k]);
  }
}

// The contributions of each softmax to the words [i, i + n), relative to the most likely one, in e [mixtures]; returns
// their sum.
TARN__VEC_INLINE tarn__vec add_up(tarn__vec *e, tarn__vec *likeliest, const float *logits, const parts *p,
                                  const tarn__mixture_row *row, int64_t i, int64_t n) {
  tarn__vec most = tarn__vec_all(-FLT_MAX), sum = {0};
  for (int64_t k = 0; k < row->mixtures; k++) {
    e[k] = read_step(logits + k * row->words, i, n) + p->shift[k];
    most = tarn__vec_max(most, e[k]);
  }
  for (int64_t k = 0; k < row->mixtures; k++) {
    e[k] = tarn__vec_exp2((e[k] - most) * to_base_2);
    sum += e[k];
  }
  *likeliest = most;
  return sum;
}

// Sums over all words, with 1 / sum and the most likely softmax of each word in the scratch.
typedef struct totals {
  double log_p;         // of the words' log p
  double shares[MOST];  // of the softmaxes' shares in the words
} totals;

enum { FACTORS = 16 };  // MOST^FACTORS is finite

static void close_product(totals *t, tarn__vec *product) {
  for (int64_t lane = 0; lane < LANES; lane++) t->log_p += log((double)(*product)[lane]);
  *product = tarn__vec_all(1.0f);
}

TARN__VEC_INLINE void total_step(tarn__vec *product, tarn__vec *most_sum, tarn__vec *shares, const float *logits,
                                 const parts *p, const tarn__mixture_row *row, int64_t i, int64_t n) {
  tarn__vec e[MOST], most;
  tarn__vec sum = add_up(e, &most, logits, p, row, i, n);
  tarn__vec inverse = tarn__vec_all(1.0f) / sum;
  tarn__vec_write_first(row->scratch, TARN__F32, i, inverse, n);
  tarn__vec_write_first(row->scratch + row->words, TARN__F32, i, most, n);
  if (n < LANES) {
    sum = tarn__vec_first(sum, n, 1.0f);
    most = tarn__vec_first(most, n, 0.0f);
    inverse = tarn__vec_first(inverse, n, 0.0f);
  }
  *product *= sum;
  *most_sum += most;
  for (int64_t k = 0; k < row->mixtures; k++)
    shares[k] += (n == LANES ? e[k] : tarn__vec_first(e[k], n, 0.0f)) * inverse;
}

static void find_totals(totals *t, const float *logits, const parts *p, const tarn__mixture_row *row) {
  *t = (totals){0};
  tarn__vec product = tarn__vec_all(1.0f);
  for (int64_t first = 0; first < row->words; first += PIECE) {
    const int64_t end = row->words - first < PIECE ? row->words : first + PIECE;
    tarn__vec most = {0}, shares[MOST] = {{0}};
    int64_t i = first, factors = 0;
    for (; i + LANES <= end; i += LANES) {
      total_step(&product, &most, shares, logits, p, row, i, LANES);
      if (++factors % (FACTORS / 2) == 0) close_product(t, &product);
    }
    if (i < end) total_step(&product, &most, shares, logits, p, row, i, end - i);
    close_product(t, &product);
    t->log_p += (double)tarn__vec_sum_lanes(most)[0];
    for (int64_t k = 0; k < row->mixtures; k++) t->shares[k] += (double)tarn__vec_sum_lanes(shares[k])[0];
  }
}

// The gradients of the logits of a softmax: (s_v all - base r_v) scale, where r_v is its share in word v.
typedef struct factors {
  float log_sum, shift, all, base;
} factors;

TARN__VEC_INLINE void gradient_step(float *logits, const factors *f, const tarn__mixture_row *row, int64_t i,
                                    int64_t n) {
  const tarn__vec x = read_step(logits, i, n);
  tarn__vec g = tarn__vec_exp2((x - f->log_sum) * to_base_2) * f->all;
  if (f->base > 0.0f) {
    const tarn__vec most = read_step(row->scratch + row->words, i, n), inverse = read_step(row->scratch, i, n);
    g -= tarn__vec_exp2((x + f->shift - most) * to_base_2) * inverse * f->base;
  }
  if (row->sums) tarn__vec_write_first(row->sums, TARN__F32, i, read_step(row->sums, i, n) + g, n);
  // In BF16, writes end before the next read.
  tarn__vec_write_first(logits, row->dtype, i, g, n);
}

static void set(float *logits, tarn__dtype dtype, int64_t i, float value) {
  if (dtype == TARN__BF16)
    ((uint16_t *)(void *)logits)[i] = tarn__bf16_from_f32(value);
  else
    logits[i] = value;
}

// share: of the softmax in the target.
static void gradient(float *logits, const factors *f, const tarn__mixture_row *row, double share) {
  const double scale = (double)row->scale;
  const double target = exp((double)logits[row->target] - (double)f->log_sum) * (double)f->all -
                        scale * (1.0 - row->smoothing + row->smoothing / (double)row->words) * share;
  const float before = row->sums ? row->sums[row->target] : 0.0f;
  int64_t i = 0;
  for (; i + LANES <= row->words; i += LANES) gradient_step(logits, f, row, i, LANES);
  if (i < row->words) gradient_step(logits, f, row, i, row->words - i);
  set(logits, row->dtype, row->target, (float)target);
  if (row->sums) row->sums[row->target] = before + (float)target;
}

static void loss(float *logits, double result[2], const tarn__mixture_row *row) {
  parts p;
  totals t = {0};
  find_parts(&p, logits, row);
  double terms[MOST], most = -INFINITY, sum = 0.0;
  for (int64_t k = 0; k < row->mixtures; k++) {
    terms[k] = p.log_prior[k] - p.log_sums[k] + (double)logits[k * row->words + row->target];
    if (!(terms[k] <= most)) most = terms[k];
  }
  for (int64_t k = 0; k < row->mixtures; k++) sum += exp(terms[k] - most);
  const double log_p = most + log(sum), spread = row->smoothing / (double)row->words;
  if (row->smoothing > 0.0) find_totals(&t, logits, &p, row);
  result[1] = -log_p;
  result[0] = -(1.0 - row->smoothing) * log_p - spread * t.log_p;
  for (int64_t k = 0; row->wants_grad && k < row->mixtures; k++) {
    const double share = exp(terms[k] - log_p), all = (1.0 - row->smoothing) * share + spread * t.shares[k];
    const factors f = {.log_sum = p.log_sum[k],
                       .shift = p.shift[k],
                       .all = (float)((double)row->scale * all),
                       .base = (float)((double)row->scale * spread)};
    row->dprior[k] = (float)((double)row->scale * (exp(p.log_prior[k]) - all));
    gradient(logits + k * row->words, &f, row, share);
  }
}

static void log_words(float *log_p, const float *logits, const tarn__mixture_row *row) {
  parts p;
  find_parts(&p, logits, row);
  for (int64_t i = 0; i < row->words; i += LANES) {
    const int64_t n = row->words - i < LANES ? row->words - i : LANES;
    tarn__vec e[MOST], most;
    const tarn__vec sum = add_up(e, &most, logits, &p, row, i, n);
    for (int64_t lane = 0; lane < n; lane++) log_p[i + lane] = most[lane] + (float)log((double)sum[lane]);
  }
}

const tarn__mixture_kernels TARN__FAST(tarn__mixture_kernels) = {.loss = loss, .log = log_words};

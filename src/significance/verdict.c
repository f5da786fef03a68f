#include "significance/verdict.h"

#include <math.h>

#include "significance/student.h"

#define LEVEL 0.05         // accepted rate of false verdicts
enum { SEEDS_LEAST = 3 };  // required for a verdict on configurations

// From the first value on, so that the mean of equal values is exact and their variance 0.
static double mean_of(const double *values, size_t count) {
  double sum = 0;
  for (size_t i = 1; i < count; i++) sum += values[i] - values[0];
  return values[0] + sum / (double)count;
}

// Sample variance; 0 for one value, where it is unknown.
static double variance_of(const double *values, size_t count) {
  double mean = mean_of(values, count);
  double squares = 0;
  for (size_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
  return count > 1 ? squares / (double)(count - 1) : 0;
}

// The running variance of a list (Welford 1962).
typedef struct running {
  double count, mean, squares;
} running;

static void add(running *v, double value) {
  double change = value - v->mean;
  v->count++;
  v->mean += change / v->count;
  v->squares += change * (value - v->mean);
}

static double spread(const running *v) { return v->count > 1 ? v->squares / (v->count - 1) : 0; }

static double resampled_mean(const tarn__verdict_side *side, int64_t resample) {
  double sum = 0;
  for (size_t i = 0; i < side->runs; i++) sum += side->resampled[i][resample];
  return sum / (double)side->runs;
}

// The part of the variance over resamples of a side's mean that is specific to each run: sentences that went well or
// badly in that run alone. The variance of the scores over seeds already contains it. It cannot be determined from one
// run.
static double own_variance(const tarn__verdict_side *side, int64_t resamples) {
  double sum = 0;
  if (side->runs < 2) return 0;
  for (size_t i = 0; i < side->runs; i++) {
    running v = {0};
    for (int64_t r = 0; r < resamples; r++) add(&v, side->resampled[i][r] - resampled_mean(side, r));
    sum += spread(&v);
  }
  return sum / (double)(side->runs - 1) / (double)side->runs;
}

// The variance of the difference of the means due to the choice of items, beyond the part specific to each run.
static double item_variance(const tarn__verdict_side *a, const tarn__verdict_side *b, int64_t resamples) {
  running v = {0};
  for (int64_t r = 0; r < resamples; r++) add(&v, resampled_mean(a, r) - resampled_mean(b, r));
  return fmax(0, spread(&v) - own_variance(a, resamples) - own_variance(b, resamples));
}

static tarn_results_basis basis_of(size_t a, size_t b, bool tested) {
  size_t fewer = a < b ? a : b;
  if (fewer == 0) return TARN_RESULTS_NO_SCORES;
  if (fewer >= SEEDS_LEAST) return TARN_RESULTS_CONFIGURATIONS;
  if (a == 1 && b == 1 && tested) return TARN_RESULTS_MODELS;
  return fewer == 1 ? TARN_RESULTS_ONE_SEED : TARN_RESULTS_TWO_SEEDS;
}

tarn_results_verdict tarn__verdict_none(size_t runs, size_t other_runs, bool less) {
  return (tarn_results_verdict){.less = less,
                                .runs = runs,
                                .other_runs = other_runs,
                                .difference = NAN,
                                .low = NAN,
                                .high = NAN,
                                .error = NAN,
                                .freedom = NAN,
                                .seed_error = NAN,
                                .p_single = NAN,
                                .p = NAN};
}

void tarn__verdict_of(tarn_results_verdict *v, const tarn__verdict_side *a, const tarn__verdict_side *b,
                      const tarn__verdict_test *test) {
  *v = tarn__verdict_none(a->runs, b->runs, test->less);
  v->basis = basis_of(a->runs, b->runs, test->resamples > 0);
  if (v->basis == TARN_RESULTS_NO_SCORES) return;
  v->difference = mean_of(a->scores, a->runs) - mean_of(b->scores, b->runs);
  if (v->basis == TARN_RESULTS_ONE_SEED) return;
  double seeds_a = variance_of(a->scores, a->runs) / (double)a->runs;
  double seeds_b = variance_of(b->scores, b->runs) / (double)b->runs;
  double items = test->resamples > 1 ? item_variance(a, b, test->resamples) : 0;
  double variance = seeds_a + seeds_b + items;
  // Satterthwaite's degrees of freedom of a sum of variances.
  double parts = 0;
  if (a->runs > 1) parts += seeds_a * seeds_a / (double)(a->runs - 1);
  if (b->runs > 1) parts += seeds_b * seeds_b / (double)(b->runs - 1);
  if (test->items > 1) parts += items * items / (double)(test->items - 1);
  if (!(variance > 0) || !(parts > 0)) {  // all scores are equal, or so close that their squares vanish
    if (v->difference == 0 && v->basis != TARN_RESULTS_TWO_SEEDS)
      v->p_single = 1;
    else
      v->basis = TARN_RESULTS_NO_SPREAD;
    return;
  }
  v->freedom = variance * variance / parts;
  v->error = sqrt(variance);
  v->seed_error = sqrt(seeds_a + seeds_b);
  double half = tarn__student_quantile(LEVEL, v->freedom) * v->error;
  v->low = v->difference - half;
  v->high = v->difference + half;
  // Of p, which many comparisons are corrected by: else a variance of few seeds that is small by chance leaves the
  // items' many degrees, and the tails are those of a normal distribution.
  if (a->runs > 1 && b->runs > 1) v->freedom = fmin(v->freedom, (double)(a->runs + b->runs - 2));
  if (v->basis != TARN_RESULTS_TWO_SEEDS) v->p_single = tarn__student_p(v->difference / v->error, v->freedom);
}

static double listed(const tarn__holm_list *list, size_t index) {
  return *(const double *)(const void *)((const char *)list->first + index * list->stride);
}

double tarn__holm(const tarn__holm_list *list, size_t index) {
  const double own = listed(list, index);
  size_t tested = 0;
  double corrected = 0;
  if (isnan(own)) return NAN;
  for (size_t i = 0; i < list->count; i++) tested += !isnan(listed(list, i));
  // The corrected p is the maximum, over all p' <= p, of p' times the number of p not below p'; equal ones may have
  // any order, and the first gets the largest factor.
  for (size_t j = 0; j < list->count; j++) {
    const double other = listed(list, j);
    size_t below = 0;
    if (isnan(other) || other > own) continue;
    for (size_t k = 0; k < list->count; k++) below += listed(list, k) < other;
    corrected = fmax(corrected, fmin(1, other * (double)(tested - below)));
  }
  return corrected;
}

size_t tarn__verdict_correct(tarn_results_verdict *verdicts, size_t count) {
  const tarn__holm_list list = {&verdicts->p_single, sizeof *verdicts, count};
  size_t tested = 0;
  for (size_t i = 0; i < count; i++) tested += !isnan(verdicts[i].p_single);
  for (size_t i = 0; i < count; i++) {
    tarn_results_verdict *v = &verdicts[i];
    v->comparisons = tested;
    if (isnan(v->p_single)) continue;
    v->p = tarn__holm(&list, i);
    if (v->p <= LEVEL)
      v->decision = (v->difference > 0) != v->less ? TARN_RESULTS_BETTER : TARN_RESULTS_WORSE;
    else
      v->decision = TARN_RESULTS_UNDECIDED;
  }
  return tested;
}

bool tarn__verdict_leads(const tarn_results_verdict *v, size_t others) {
  return v->basis == TARN_RESULTS_CONFIGURATIONS && (v->difference > 0) != v->less &&
         v->p_single * (double)others <= LEVEL;
}

const char *tarn__verdict_word(bool better, bool neutral, bool models) {
  static const char *const words[2][2] = {{"worse", "better"}, {"smaller", "larger"}};
  static const char *const of_models[2][2] = {{"worse, of these two models", "better, of these two models"},
                                              {"smaller, of these two models", "larger, of these two models"}};
  return models ? of_models[neutral][better] : words[neutral][better];
}

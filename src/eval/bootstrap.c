#include "eval/bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

// How often a resample has each sentence.
static void draw(uint32_t *times, size_t sentences, const tarn__bootstrap_options *o, int64_t resample) {
  for (size_t s = 0; s < sentences; s++) times[s] = 0;
  if (o->indices) {
    const uint32_t *indices = o->indices + (size_t)resample * sentences;
    for (size_t s = 0; s < sentences; s++) times[indices[s]]++;
    return;
  }
  tarn__random random;
  tarn__random_init(&random, o->seed, (uint32_t)resample);
  for (size_t s = 0; s < sentences; s++) times[tarn__random_below(&random, sentences)]++;
}

// BLEU of the sentences, each as often as `times` says; NULL: once.
static double score(const tarn__bleu_statistics *statistics, const uint32_t *times, size_t sentences,
                    const tarn_bleu_options *bleu) {
  tarn__bleu_statistics sums = {0};
  for (size_t s = 0; s < sentences; s++) {
    const tarn__bleu_statistics *one = &statistics[s];
    int64_t n = times ? times[s] : 1;
    if (n == 0) continue;
    for (int k = 0; k < TARN_BLEU_ORDER; k++) {
      sums.counts[k] += n * one->counts[k];
      sums.totals[k] += n * one->totals[k];
    }
    sums.hypothesis_length += n * one->hypothesis_length;
    sums.reference_length += n * one->reference_length;
  }
  return tarn__bleu_score(&sums, bleu);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

// From the observed difference and those of the resamples, which are left sorted.
static tarn_results_significance judge(double observed, double *differences, int64_t count) {
  tarn_results_significance result = {.difference = observed};
  int64_t wins = 0;
  int64_t not_better = 0;
  int64_t far = 0;  // for sacreBLEU's p
  double mean = 0;
  for (int64_t r = 0; r < count; r++) mean += fabs(differences[r]) / (double)count;
  for (int64_t r = 0; r < count; r++) {
    double d = differences[r];
    wins += d > 0;
    // Where the systems are equal on the test set nothing speaks for either of them.
    not_better += observed > 0 ? d <= 0 : observed < 0 ? d >= 0 : 1;
    far += fabs(d) - mean > fabs(observed);
  }
  qsort(differences, (size_t)count, sizeof *differences, by_value);
  int64_t tail = count / 40;  // 2.5 %, as sacreBLEU takes it
  result.low = differences[tail];
  result.high = differences[count - 1 - tail];
  result.wins = (double)wins / (double)count;
  result.p = (double)not_better / (double)count;
  // A difference of either sign would have been told, so both tails count.
  result.p_two_sided = fmin(1, 2 * result.p);
  result.p_sacrebleu = (double)(far + 1) / (double)(count + 1);
  return result;
}

typedef struct room {
  uint32_t *times;      // (sentences)
  double *differences;  // (pairs + 1, resamples): of each pair, then of their mean
  double *observed;     // (pairs + 1)
} room;

static tarn_status take(room *r, size_t pairs, size_t sentences, size_t resamples) {
  void *memory;
  size_t size;
  TARN_TRY(tarn__mul_size(&size, pairs + 1, resamples));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sentences, sizeof *r->times));
  r->times = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, sizeof *r->differences));
  r->differences = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, pairs + 1, sizeof *r->observed));
  r->observed = memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__bootstrap(tarn_results_significance *pooled, tarn_results_significance *per_pair,
                            const tarn__bleu_statistics *const *systems, const tarn__bleu_statistics *const *baselines,
                            size_t pairs, size_t sentences, const tarn__bootstrap_options *o) {
  TARN_REQUIRE(pairs > 0 && sentences > 0 && sentences <= INT32_MAX, USAGE,
               "paired bootstrap needs at least one pair of systems, and 1 to %d sentences", INT32_MAX);
  TARN_REQUIRE(o->resamples >= 1 && o->resamples <= TARN__RESAMPLES_MOST, USAGE,
               "paired bootstrap takes 1 to %d resamples, not %lld", TARN__RESAMPLES_MOST, (long long)o->resamples);
  room kept = {0};
  int64_t resamples = o->resamples;
  tarn_status status = take(&kept, pairs, sentences, (size_t)resamples);
  // Round -1 is the test set as it is.
  for (int64_t r = -1; r < resamples && status == TARN_STATUS_OK; r++) {
    if (r >= 0) draw(kept.times, sentences, o, r);
    double sum = 0;
    for (size_t i = 0; i <= pairs; i++) {
      double *out = r < 0 ? &kept.observed[i] : &kept.differences[i * (size_t)resamples + (size_t)r];
      const uint32_t *times = r < 0 ? NULL : kept.times;
      *out = i == pairs ? sum / (double)pairs
                        : score(systems[i], times, sentences, o->bleu) - score(baselines[i], times, sentences, o->bleu);
      sum += *out;
    }
  }
  for (size_t i = 0; i <= pairs && status == TARN_STATUS_OK; i++) {
    tarn_results_significance result = judge(kept.observed[i], kept.differences + i * (size_t)resamples, resamples);
    if (i == pairs) *pooled = result;
    if (i < pairs && per_pair) per_pair[i] = result;
  }
  tarn__free(kept.times);
  tarn__free(kept.differences);
  tarn__free(kept.observed);
  return status;
}

static tarn_status count_all(tarn__bleu_statistics *statistics, const char *const *const *hypotheses,
                             const char *const *const *baselines, size_t systems, const char *const *references,
                             size_t sentences, const tarn_bleu_options *bleu) {
  for (size_t i = 0; i < 2 * systems; i++)
    TARN_TRY(tarn__bleu_sentences(statistics + i * sentences, i < systems ? hypotheses[i] : baselines[i - systems],
                                  &references, sentences, 1, bleu));
  return TARN_STATUS_OK;
}

tarn_status tarn_results_bootstrap(tarn_results_significance *pooled, tarn_results_significance *per_pair,
                                   const char *const *const *hypotheses, const char *const *const *baselines,
                                   size_t systems, const char *const *references, size_t sentences,
                                   const tarn_bleu_options *bleu, int64_t resamples, uint64_t seed) {
  tarn_bleu_options defaults;
  tarn_bleu_default(&defaults);
  tarn__bootstrap_options options = {.bleu = bleu ? bleu : &defaults, .resamples = resamples, .seed = seed};
  size_t all;
  void *memory = NULL;
  void *list = NULL;
  TARN_REQUIRE(systems > 0 && systems <= SIZE_MAX / 2, USAGE, "paired bootstrap needs at least one pair of systems");
  TARN_TRY(tarn__mul_size(&all, 2 * systems, sentences));
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, all, sizeof(tarn__bleu_statistics));
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&list, TARN__MEMORY_OTHER, 2 * systems, sizeof(tarn__bleu_statistics *));
  tarn__bleu_statistics *statistics = memory;
  const tarn__bleu_statistics **pointers = list;
  if (status == TARN_STATUS_OK)
    status = count_all(statistics, hypotheses, baselines, systems, references, sentences, options.bleu);
  if (status == TARN_STATUS_OK) {
    for (size_t i = 0; i < 2 * systems; i++) pointers[i] = statistics + i * sentences;
    status = tarn__bootstrap(pooled, per_pair, pointers, pointers + systems, systems, sentences, &options);
  }
  tarn__free(list);
  tarn__free(memory);
  return status;
}

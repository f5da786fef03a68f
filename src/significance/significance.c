#include "base/work.h"
#include "tarn/lab/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/bootstrap.h"
#include "eval/statistics.h"

typedef struct work {
  const tarn_statistics *const *systems;
  size_t count, sentences, width;
  const tarn_significance_options *options;
  double *sums[2];   // (width)
  double *scores;    // (systems, resamples), or (trials)
  double *observed;  // (systems)
  uint32_t *chosen;  // one bit per sentence
} work;

void tarn_significance_default(tarn_significance_options *options) {
  *options = (tarn_significance_options){.seed = 12345};
}

static tarn_status check_number(int64_t number, const char *what) {
  TARN_REQUIRE(number == 0 || (number >= TARN_SIGNIFICANCE_LEAST && number <= TARN_SIGNIFICANCE_MOST), USAGE,
               "the number of %s must be from %d to %d, not %lld", what, TARN_SIGNIFICANCE_LEAST,
               TARN_SIGNIFICANCE_MOST, (long long)number);
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn_statistics *const *systems, size_t count, const tarn_significance_options *o) {
  TARN_REQUIRE(count > 0, USAGE, "there is no system to score");
  for (size_t i = 0; i < count; i++) {
    TARN_REQUIRE(systems[i]->sentences > 0 && systems[i]->sentences <= INT32_MAX, USAGE,
                 "resampling takes 1 to %d sentences, not %zu", INT32_MAX, systems[i]->sentences);
    TARN_REQUIRE(systems[i]->sentences == systems[0]->sentences && systems[i]->width == systems[0]->width &&
                     systems[i]->score == systems[0]->score,
                 USAGE, "system %zu and the first one were not scored alike", i + 1);
  }
  TARN_TRY(check_number(o->resamples, "resamples"));
  TARN_TRY(check_number(o->trials, "trials"));
  TARN_REQUIRE(!o->paired_bootstrap || o->resamples, USAGE, "the paired bootstrap needs a number of resamples");
  TARN_REQUIRE(!o->paired_bootstrap || !o->trials, USAGE,
               "paired bootstrap and approximate randomization are two tests; take one");
  TARN_REQUIRE(count > 1 || (!o->paired_bootstrap && !o->trials), USAGE, "a paired test needs two systems or more");
  return TARN_STATUS_OK;
}

static tarn_status work_open(work *w) {
  size_t scores;
  void *memory;
  TARN_TRY(tarn__mul_size(&scores, w->count, (size_t)w->options->resamples));
  if (scores < (size_t)w->options->trials) scores = (size_t)w->options->trials;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * w->width, sizeof **w->sums));
  w->sums[0] = memory;
  w->sums[1] = w->sums[0] + w->width;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, scores, sizeof *w->scores));
  w->scores = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, w->count, sizeof *w->observed));
  w->observed = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, w->sentences / 32 + 1, sizeof *w->chosen));
  w->chosen = memory;
  return TARN_STATUS_OK;
}

static void work_close(work *w) {
  tarn__free(w->sums[0]);
  tarn__free(w->scores);
  tarn__free(w->observed);
  tarn__free(w->chosen);
}

static double resampled_score(void *user, size_t system, const uint32_t *times) {
  const work *w = user;
  return tarn__statistics_score_of(w->systems[system], times, w->sums[0]);
}

// The difference of two systems after the chosen sentences were exchanged. All sums have the same order, so that equal
// ones are equal to the last bit.
static double exchanged(work *w, const tarn_statistics *a, const tarn_statistics *b) {
  size_t width = w->width;
  memset(w->sums[0], 0, 2 * width * sizeof **w->sums);
  for (size_t s = 0; s < w->sentences; s++) {
    int swap = w->chosen[s / 32] >> s % 32 & 1;
    const double *rows[] = {a->values + s * width, b->values + s * width};
    for (size_t k = 0; k < width; k++) {
      w->sums[0][k] += rows[swap][k];
      w->sums[1][k] += rows[!swap][k];
    }
  }
  return fabs(a->score(w->sums[0], a->options) - b->score(w->sums[1], b->options));
}

// If only k sentences differ, exchanging all of them or none gives the observed difference: two of 2^k exchanges. That
// bounds p from below; counting only larger differences, like sacreBLEU, would give 1 / (n + 1) for k = 0 and 1.
static double p_of(const work *w, size_t system, int64_t count, int64_t n) {
  const double *a = w->systems[0]->values;
  const double *b = w->systems[system]->values;
  int differing = 0;
  for (size_t s = 0; s < w->sentences && differing < 64; s++)
    differing += memcmp(a + s * w->width, b + s * w->width, w->width * sizeof *a) != 0;
  return fmax((double)(count + 1) / (double)(n + 1), fmin(1, ldexp(2, -differing)));
}

static double randomize(work *w, size_t system, double difference) {
  int64_t count = 0;
  tarn__work progress;
  tarn__work_begin(&progress, "exchanging sentences", "trials");
  for (int64_t r = 0; r < w->options->trials; r++) {
    tarn__random random;
    tarn__work_at(&progress, (double)r, (double)r / (double)w->options->trials);
    tarn__random_init(&random, w->options->seed, (uint32_t)r);
    for (size_t i = 0; i <= w->sentences / 32; i++) w->chosen[i] = tarn__random_u32(&random);
    count += exchanged(w, w->systems[0], w->systems[system]) > fabs(difference);
  }
  tarn__work_end(&progress);
  return p_of(w, system, count, w->options->trials);
}

// The p-value of the bootstrap test, from scores on the same resamples.
static double bootstrap(const work *w, size_t system, double difference) {
  int64_t n = w->options->resamples;
  const double *scores = w->scores + system * (size_t)n;
  double mean = 0;
  int64_t count = 0;
  for (int64_t r = 0; r < n; r++) mean += fabs(scores[r] - w->scores[r]) / (double)n;
  for (int64_t r = 0; r < n; r++) count += fabs(scores[r] - w->scores[r]) - mean > fabs(difference);
  return p_of(w, system, count, n);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

// The mean and the interval of the scores; sorts them in place.
static void interval(tarn_significance *out, double *scores, int64_t n) {
  out->mean = 0;
  for (int64_t r = 0; r < n; r++) out->mean += scores[r] / (double)n;
  qsort(scores, (size_t)n, sizeof *scores, by_value);
  out->low = scores[n / 40];
  out->high = scores[n - 1 - n / 40];
  out->half_width = 0.5 * (out->high - out->low);
}

static tarn_status compute(work *w, tarn_significance *out) {
  const tarn_significance_options *o = w->options;
  for (size_t i = 0; i < w->count; i++) {
    out[i] = (tarn_significance){.mean = NAN, .low = NAN, .high = NAN, .half_width = NAN, .difference = NAN, .p = NAN};
    out[i].score = tarn__statistics_score_of(w->systems[i], NULL, w->sums[0]);
    if (i > 0 && (o->paired_bootstrap || o->trials)) out[i].difference = out[i].score - out[0].score;
    if (i > 0 && o->trials) out[i].p = randomize(w, i, out[i].difference);
  }
  if (!o->resamples) return TARN_STATUS_OK;
  const tarn__bootstrap_options draws = {.resamples = o->resamples, .seed = o->seed};
  TARN_TRY(tarn__bootstrap(w->observed, w->scores, w->count, w->sentences, resampled_score, w, &draws));
  for (size_t i = 1; i < w->count && o->paired_bootstrap; i++) out[i].p = bootstrap(w, i, out[i].difference);
  for (size_t i = 0; i < w->count; i++) interval(&out[i], w->scores + i * (size_t)o->resamples, o->resamples);
  return TARN_STATUS_OK;
}

tarn_status tarn_significance_compute(tarn_significance *out, const tarn_statistics *const *systems, size_t count,
                                      const tarn_significance_options *options) {
  tarn_significance_options defaults;
  tarn_significance_default(&defaults);
  if (!options) options = &defaults;
  TARN_TRY(check(systems, count, options));
  work w = {.systems = systems, .count = count, .options = options};
  w.sentences = systems[0]->sentences;
  w.width = systems[0]->width;
  tarn_status status = work_open(&w);
  if (status == TARN_STATUS_OK) status = compute(&w, out);
  work_close(&w);
  return status;
}

void tarn_significance_signature(char text[TARN_SIGNATURE_TEXT], const char *signature,
                                 const tarn_significance_options *options) {
  char bs[32] = "";
  char ar[32] = "";
  char seed[32] = "";
  int head = (int)strcspn(signature, "|");
  if (options->resamples) snprintf(bs, sizeof bs, "|bs:%" PRId64, options->resamples);
  if (options->trials) snprintf(ar, sizeof ar, "|ar:%" PRId64, options->trials);
  if (*bs || *ar) snprintf(seed, sizeof seed, "|seed:%" PRIu64, options->seed);
  snprintf(text, TARN_SIGNATURE_TEXT, "%.*s%s%s%s%s", head, signature, bs, ar, seed, signature + head);
}

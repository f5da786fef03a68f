#include "significance/sequential.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "significance/spending.h"
#include "significance/student.h"
#include "significance/verdict.h"

static const char *const SPENDINGS[TARN_SEQUENTIAL_SPENDINGS] = {"obrien-fleming", "pocock"};

static const char *const DECISIONS[TARN_SEQUENTIAL_DECISIONS] = {"open",       "better", "worse",
                                                                 "equivalent", "full",   "hopeless"};

// Measures, and whether they are neutral.
#define MEASURES(X)     \
  X("test_bleu", false) \
  X("test_blimp", false) X("test_score", false) X("best", false) X("aucc_mean", false) X("exponent", true)
#define ENTRY(word, neutral) {word, neutral},
#define SPACED(word, neutral) " " word

static const struct {
  const char *word;
  bool neutral;
} measures[TARN__SEQUENTIAL_MEASURES] = {MEASURES(ENTRY)};

const char *tarn__sequential_measure(int index) {
  return index >= 0 && index < TARN__SEQUENTIAL_MEASURES ? measures[index].word : NULL;
}

bool tarn__sequential_is_neutral(const tarn_sequential_design *design) {
  for (int i = 0; design->measure && i < TARN__SEQUENTIAL_MEASURES; i++)
    if (strcmp(measures[i].word, design->measure) == 0) return measures[i].neutral;
  return false;
}

const char *tarn_sequential_spending_name(tarn_sequential_spending spending) {
  return (unsigned)spending < TARN_SEQUENTIAL_SPENDINGS ? SPENDINGS[spending] : NULL;
}

const char *tarn_sequential_decision_name(tarn_sequential_decision decision) {
  return (unsigned)decision < TARN_SEQUENTIAL_DECISIONS ? DECISIONS[decision] : NULL;
}

void tarn_sequential_words(char text[TARN_SEQUENTIAL_TEXT], const tarn_sequential_verdict *v,
                           const tarn_sequential_design *design) {
  const char *word;
  if (v->obstacle && (v->decision == TARN_SEQUENTIAL_FULL || v->decision == TARN_SEQUENTIAL_HOPELESS)) {
    snprintf(text, TARN_SEQUENTIAL_TEXT, "closed: %s", v->obstacle);
    return;
  }
  switch (v->decision) {
    case TARN_SEQUENTIAL_BETTER:
    case TARN_SEQUENTIAL_WORSE:
      word = tarn__verdict_word(v->decision == TARN_SEQUENTIAL_BETTER, tarn__sequential_is_neutral(design), false);
      snprintf(text, TARN_SEQUENTIAL_TEXT, "%s", word);
      if (v->p_equal <= design->alpha)
        snprintf(text, TARN_SEQUENTIAL_TEXT, "%s, but equivalent within %g", word, design->equivalence);
      return;
    case TARN_SEQUENTIAL_EQUIVALENT:
      snprintf(text, TARN_SEQUENTIAL_TEXT, "equivalent within %g", design->equivalence);
      return;
    case TARN_SEQUENTIAL_FULL:
      snprintf(text, TARN_SEQUENTIAL_TEXT, "undecided with all %lld seeds", (long long)design->max_seeds);
      return;
    case TARN_SEQUENTIAL_HOPELESS:
      snprintf(text, TARN_SEQUENTIAL_TEXT, "closed: chance of a verdict with %lld seeds %.0f %%",
               (long long)design->max_seeds, 100 * v->chance);
      return;
    default:
      snprintf(text, TARN_SEQUENTIAL_TEXT, "%s", v->looks > 0 ? "undecided" : "not looked at yet");
  }
}

static bool is_measure(const char *word) {
  for (int i = 0; word && i < TARN__SEQUENTIAL_MEASURES; i++)
    if (strcmp(measures[i].word, word) == 0) return true;
  return false;
}

static bool is_within(double value, double least, double most) { return value >= least && value <= most; }

const char *tarn_sequential_problem(const tarn_sequential_design *d) {
  if (d->max_seeds < 3 || d->max_seeds > TARN_SEQUENTIAL_SEEDS) return "max_seeds: expected 3 to 100";
  if (d->look_count < 1 || d->look_count > TARN_SEQUENTIAL_SEEDS) return "looks: expected 1 to 100 numbers of seeds";
  for (size_t k = 0; k < d->look_count; k++)
    if (d->looks[k] < 3 || (k > 0 && d->looks[k] <= d->looks[k - 1]) || d->looks[k] > d->max_seeds)
      return "looks: expected ascending numbers of seeds, from 3 to max_seeds";
  if (d->looks[d->look_count - 1] != d->max_seeds) return "looks: the last one is at max_seeds";
  if (!is_measure(d->measure)) return "measure: expected one of" MEASURES(SPACED);
  if (!is_within(d->alpha, 0.0001, 0.2)) return "alpha: expected 0.0001 to 0.2";
  if (!tarn_sequential_spending_name(d->spending)) return "spending: expected obrien-fleming or pocock";
  if (!is_within(d->equivalence, 0, 1e9)) return "equivalence: expected a margin of 0 to 1e9";
  if (!is_within(d->futility, 0, 0.5)) return "futility: expected 0 to 0.5";
  return NULL;
}

bool tarn__sequential_is_decided(tarn_sequential_decision decision) {
  return decision == TARN_SEQUENTIAL_BETTER || decision == TARN_SEQUENTIAL_WORSE ||
         decision == TARN_SEQUENTIAL_EQUIVALENT;
}

// The times of looks, of which the latest may have fewer runs than seeds, because some failed.
typedef struct schedule {
  double spent[TARN_SEQUENTIAL_SEEDS], information[TARN_SEQUENTIAL_SEEDS];
  tarn__looks looks;
} schedule;

static double runs_of(const tarn_results_verdict *v) {
  const double a = (double)v->runs, b = (double)v->other_runs;
  return a > 0 && b > 0 ? 2 * a * b / (a + b) : 0;
}

static void schedule_of(schedule *t, const tarn__sequential_looks *looks, size_t count,
                        const tarn_sequential_design *design, int sides) {
  t->looks = (tarn__looks){t->spent, t->information, count, sides, design->spending};
  for (size_t k = 0; k < count; k++) {
    t->information[k] = runs_of(&looks->at[k]) / (double)design->max_seeds;
    t->spent[k] = k + 1 == design->look_count ? 1 : fmin(t->information[k], 1);
  }
}

// The two-sided p of a look; 1 where its runs give none.
static double difference_p(const tarn_results_verdict *v) { return isnan(v->p_single) ? 1 : v->p_single; }

// The larger of the one-sided p of difference <= -margin and of difference >= margin. Runs that all have the same score
// give none: how others would vary is not known.
static double equal_p(const tarn_results_verdict *v, double margin) {
  if (isnan(v->p_single) || isnan(v->error)) return 1;
  const double nearest = margin - fabs(v->difference);
  const double p = tarn__student_p(nearest / v->error, v->freedom) / 2;
  return nearest >= 0 ? p : 1 - p;
}

static tarn_status sequential_p(double *p, size_t *look, const tarn__sequential_looks *looks,
                                const tarn_sequential_design *design, bool equal) {
  schedule t;
  double z[TARN_SEQUENTIAL_SEEDS];
  schedule_of(&t, looks, looks->count, design, equal ? 1 : 2);
  for (size_t k = 0; k < looks->count; k++)
    z[k] = tarn__normal_z(equal ? equal_p(&looks->at[k], design->equivalence) : difference_p(&looks->at[k]),
                          equal ? 1 : 2);
  return tarn__sequential_p(p, look, &t.looks, z);
}

// The repeated confidence interval at the latest look.
static tarn_status interval(tarn_sequential_verdict *v, const tarn__sequential_looks *looks,
                            const tarn_sequential_design *design) {
  schedule t;
  double critical[TARN_SEQUENTIAL_SEEDS];
  schedule_of(&t, looks, looks->count, design, 2);
  TARN_TRY(tarn__critical_values(critical, &t.looks, design->alpha));
  const double p = erfc(critical[looks->count - 1] / sqrt(2));
  if (!(v->error > 0) || !(p > 1e-290)) return TARN_STATUS_OK;
  const double half = tarn__student_quantile(p, v->freedom) * v->error;
  v->low = v->difference - half;
  v->high = v->difference + half;
  return TARN_STATUS_OK;
}

void tarn__sequential_blank(tarn_sequential_verdict *v, const tarn_sequential_design *design, size_t comparisons) {
  *v = (tarn_sequential_verdict){.next_seeds = design->looks[0],
                                 .difference = NAN,
                                 .error = NAN,
                                 .seed_error = NAN,
                                 .freedom = NAN,
                                 .low = NAN,
                                 .high = NAN,
                                 .p_single = 1,
                                 .p = 1,
                                 .p_equal_single = design->equivalence > 0 ? 1 : NAN,
                                 .p_equal = design->equivalence > 0 ? 1 : NAN,
                                 .comparisons = comparisons,
                                 .chance = NAN};
}

static tarn_status describe(tarn_sequential_verdict *v, const tarn__sequential_looks *looks,
                            const tarn_sequential_design *design, size_t comparisons) {
  const size_t n = looks->count;
  tarn__sequential_blank(v, design, comparisons);
  if (n == 0) return TARN_STATUS_OK;
  v->looks = n;
  v->seeds = design->looks[n - 1];
  v->next_seeds = n < design->look_count ? design->looks[n] : 0;
  const tarn_results_verdict *last = &looks->at[n - 1];
  v->difference = last->difference;
  // What one run lacks, all later looks lack; of one processor there may be more runs then.
  const bool lacking = last->basis >= TARN_RESULTS_NO_ITEMS && last->basis <= TARN_RESULTS_OTHER_SOURCES;
  if (lacking || (last->basis == TARN_RESULTS_OTHER_PROCESSORS && v->next_seeds == 0))
    v->obstacle = last->words ? last->words : "no verdict";
  if (!isnan(last->p_single)) {
    v->error = last->error;
    v->seed_error = last->seed_error;
    v->freedom = last->freedom;
  }
  size_t ignored;
  TARN_TRY(sequential_p(&v->p_single, &v->p_look, looks, design, false));
  if (design->equivalence > 0) TARN_TRY(sequential_p(&v->p_equal_single, &ignored, looks, design, true));
  return interval(v, looks, design);
}

// The probability that Student's t is above x.
static double above(double x, double freedom) {
  const double p = tarn__student_p(x, freedom) / 2;
  return x >= 0 ? p : 1 - p;
}

// The critical value of an error's multiple at a look to come, if all looks have as many runs as seeds.
static tarn_status multiple(double *out, const tarn_sequential_design *design, size_t look, double alpha, int sides,
                            double freedom) {
  double times[TARN_SEQUENTIAL_SEEDS], critical[TARN_SEQUENTIAL_SEEDS];
  for (size_t k = 0; k <= look; k++) times[k] = (double)design->looks[k] / (double)design->max_seeds;
  const tarn__looks looks = {times, times, look + 1, sides, design->spending};
  TARN_TRY(tarn__critical_values(critical, &looks, alpha));
  const double p = erfc(critical[look] / sqrt(2));  // of both sides
  *out = p > 1e-290 ? tarn__student_quantile(fmin(p, 1), freedom) : INFINITY;
  return TARN_STATUS_OK;
}

tarn_status tarn__sequential_chance(double *chance, const tarn_sequential_verdict *v,
                                    const tarn_sequential_design *design, size_t look, size_t decided, size_t equal) {
  *chance = NAN;
  if (v->looks == 0 || !(v->error > 0) || look + 1 < v->looks) return TARN_STATUS_OK;
  // Of a sum of variances only the seeds' part falls with their number.
  const double more = (double)design->looks[look] / (double)v->seeds;
  const double seeds = v->seed_error * v->seed_error, now = v->error * v->error;
  const double then = now - seeds + seeds / more, error = sqrt(then);
  const double freedom = v->freedom * (double)(design->looks[look] - 1) / (double)(v->seeds - 1);
  const double deviation = sqrt(fmax(now - then, 0));
  double times_error, share = 0;
  const size_t comparisons = v->comparisons > 0 ? v->comparisons : 1;
  TARN_TRY(multiple(&times_error, design, look,
                    design->alpha / (double)(comparisons - (decided < comparisons ? decided : 0)), 2, freedom));
  const double far = times_error * error;
  if (deviation > 1e-9 * error)
    share = above((far - v->difference) / deviation, v->freedom) + above((far + v->difference) / deviation, v->freedom);
  else
    share = fabs(v->difference) >= far;
  if (design->equivalence > 0) {
    TARN_TRY(multiple(&times_error, design, look,
                      design->alpha / (double)(comparisons - (equal < comparisons ? equal : 0)), 1, freedom));
    const double near = design->equivalence - times_error * error;
    if (near > 0 && deviation > 1e-9 * error)
      share += above((-near - v->difference) / deviation, v->freedom) -
               above((near - v->difference) / deviation, v->freedom);
    else
      share += fabs(v->difference) <= near;
  }
  *chance = fmin(share, 1);
  return TARN_STATUS_OK;
}

static tarn_sequential_decision decide(const tarn_sequential_verdict *v, const tarn__sequential_looks *looks,
                                       const tarn_sequential_design *design) {
  if (v->p <= design->alpha && v->p_look > 0) {
    // Later looks may have the other sign: what was shown is the direction of the look that reached its value.
    const tarn_results_verdict *look = &looks->at[v->p_look - 1];
    return (look->difference > 0) != look->less ? TARN_SEQUENTIAL_BETTER : TARN_SEQUENTIAL_WORSE;
  }
  if (v->p_equal <= design->alpha) return TARN_SEQUENTIAL_EQUIVALENT;
  if (v->looks == design->look_count) return TARN_SEQUENTIAL_FULL;
  return TARN_SEQUENTIAL_OPEN;
}

tarn_status tarn__sequential_judge(tarn_sequential_verdict *verdicts, const tarn__sequential_looks *looks, size_t count,
                                   const tarn_sequential_design *design) {
  const tarn__holm_list differences = {&verdicts->p_single, sizeof *verdicts, count};
  const tarn__holm_list equivalences = {&verdicts->p_equal_single, sizeof *verdicts, count};
  size_t decided = 0, equal = 0;
  for (size_t i = 0; i < count; i++) TARN_TRY(describe(&verdicts[i], &looks[i], design, count));
  for (size_t i = 0; i < count; i++) {
    tarn_sequential_verdict *v = &verdicts[i];
    v->p = tarn__holm(&differences, i);
    v->p_equal = tarn__holm(&equivalences, i);
    v->decision = decide(v, &looks[i], design);
    decided += v->p <= design->alpha;
    equal += v->p_equal <= design->alpha;
  }
  for (size_t i = 0; i < count; i++) {
    tarn_sequential_verdict *v = &verdicts[i];
    if (v->decision != TARN_SEQUENTIAL_OPEN) continue;
    if (v->obstacle)
      v->chance = 0;
    else
      TARN_TRY(tarn__sequential_chance(&v->chance, v, design, design->look_count - 1, decided, equal));
    if (v->obstacle || v->chance < design->futility) v->decision = TARN_SEQUENTIAL_HOPELESS;
  }
  return TARN_STATUS_OK;
}

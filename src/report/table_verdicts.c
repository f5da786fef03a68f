// Computes the verdicts on the differences between configurations; no other file does.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "report/judge.h"
#include "report/results_memory.h"

// A field of tarn_results_measures under its own name, and what differs for it.
#define MEASURE(field, ...) \
  { .key = #field, .offset = offsetof(tarn_results_measures, field), __VA_ARGS__ }
static const struct {
  const char *key;
  size_t offset;
  bool less, tested, neutral, timed;
  bool whole;  // it is over the whole budget, which runs elsewhere have none of where it is the longest time
} measures[TARN_RESULTS_JUDGED_MEASURES] = {
    [TARN_RESULTS_JUDGED_TEST_BLEU] = MEASURE(test_bleu, .tested = true),
    [TARN_RESULTS_JUDGED_TEST_CHRF] = MEASURE(test_chrf, .tested = true),
    [TARN_RESULTS_JUDGED_TEST_BLIMP] = MEASURE(test_blimp, .tested = true),
    [TARN_RESULTS_JUDGED_TEST_SCORE] = MEASURE(test_score, .less = false),  // `less` is the measure's
    [TARN_RESULTS_JUDGED_BEST] = MEASURE(best, .less = false),              // `less` is the table's
    [TARN_RESULTS_JUDGED_AUCC] = MEASURE(aucc_mean, .less = false, .timed = true, .whole = true),
    [TARN_RESULTS_JUDGED_EXPONENT] = MEASURE(exponent, .neutral = true),
    [TARN_RESULTS_JUDGED_MIN_LOSS] = MEASURE(min_loss, .less = true),
    [TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS] = MEASURE(min_train_loss, .less = true),
    [TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS] = MEASURE(epoch_train_loss, .less = true),
    [TARN_RESULTS_JUDGED_BEST_SECONDS] = MEASURE(best_seconds, .less = true, .timed = true),
    [TARN_RESULTS_JUDGED_EPOCH_SECONDS] = MEASURE(epoch_seconds, .less = true, .timed = true),
    [TARN_RESULTS_JUDGED_BUDGET_STEP] = MEASURE(budget_step, .less = false, .timed = true, .whole = true),
    [TARN_RESULTS_JUDGED_BUDGET_EPOCH] = MEASURE(budget_epoch, .less = false, .timed = true, .whole = true),
    [TARN_RESULTS_JUDGED_PEAK_BYTES] = MEASURE(peak_bytes, .less = true, .timed = true),
    [TARN_RESULTS_JUDGED_EPOCH_JOULES] = MEASURE(epoch_joules, .less = true, .timed = true),
    [TARN_RESULTS_JUDGED_BEST_JOULES] = MEASURE(best_joules, .less = true, .timed = true),
    [TARN_RESULTS_JUDGED_BEST_OPERATIONS] = MEASURE(best_operations, .less = true),
};
#undef MEASURE

void tarn_results_p(char text[TARN_RESULTS_P_TEXT], double p) {
  if (isnan(p))
    text[0] = '\0';
  else if (p < 0.001)
    snprintf(text, TARN_RESULTS_P_TEXT, "< 0.001");
  else if (p > 0.05 && p < 0.0505)  // or it would look decided
    snprintf(text, TARN_RESULTS_P_TEXT, "%.4f", fmax(p, 0.0501));
  else
    snprintf(text, TARN_RESULTS_P_TEXT, "%.3f", fmin(p, 1));
}

const char *tarn__judging_words(const tarn__judging *w, const tarn_results_verdict *v) {
  static const char *const none[TARN_RESULTS_BASES] = {
      [TARN_RESULTS_ONE_SEED] = "no verdict (one seed)",
      [TARN_RESULTS_TWO_SEEDS] = "no verdict (two seeds)",
      [TARN_RESULTS_NO_ITEMS] = "no verdict (outputs missing)",
      [TARN_RESULTS_NO_RESAMPLES] = "no verdict (no resamples)",
      [TARN_RESULTS_OTHER_LOSSES] = "no verdict (other losses)",
      [TARN_RESULTS_OTHER_SOURCES] = "no verdict (other sources)",
      [TARN_RESULTS_OTHER_PROCESSORS] = "no verdict (other processors)",
      [TARN_RESULTS_NO_SPREAD] = "no verdict (equal seeds)",
      [TARN_RESULTS_NO_SCORES] = "no verdict (no score)"};
  bool models = v->basis == TARN_RESULTS_MODELS;
  switch (v->decision) {
    case TARN_RESULTS_BETTER:
    case TARN_RESULTS_WORSE:
      return tarn__verdict_word(v->decision == TARN_RESULTS_BETTER, measures[w->measure].neutral, models);
    case TARN_RESULTS_UNDECIDED:
      return models ? "undecided, of these two models" : "undecided";
    case TARN_RESULTS_NONE:
      break;
  }
  return none[v->basis];
}

double tarn__judging_score(const tarn__judging *w, size_t run) {
  double value;
  memcpy(&value, (const char *)&w->table->measures[run] + w->offset, sizeof value);
  return value;
}

static tarn_status take(tarn__judging *w) {
  void *memory;
  tarn__arena *arena = &w->table->arena;
  const tarn_results *r = w->table->results;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->group_count, sizeof *w->sides));
  w->sides = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->group_count, sizeof *w->incomplete));
  w->incomplete = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->group_count, sizeof *w->elsewhere));
  w->elsewhere = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->run_count, sizeof *w->scores));
  w->scores = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->run_count, sizeof *w->resampled));
  w->resampled = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, r->run_count, sizeof *w->seeds));
  w->seeds = memory;
  return TARN_STATUS_OK;
}

// Whether the measure is of another processor than the run.
static bool is_elsewhere(const tarn__judging *w, size_t run) {
  return measures[w->measure].timed && w->table->measures[run].elsewhere;
}

static bool is_among(const tarn_results *r, int64_t seed, size_t seeds) {
  if (seeds == 0) return true;
  for (size_t i = 0; i < seeds && i < r->seed_count; i++)
    if (r->seeds[i] == seed) return true;
  return false;
}

// All runs with the score that are in the mean. If one of them lacks its outputs, the scores still give a difference,
// but no significance.
void tarn__judging_collect(tarn__judging *w, size_t seeds) {
  const tarn_results *r = w->table->results;
  const bool resampled = w->outputs && w->outputs->resampled;
  size_t next = 0;
  for (size_t g = 0; g < r->group_count; g++) {
    const tarn_results_group *group = &r->groups[g];
    tarn__verdict_side *side = &w->sides[g];
    *side = (tarn__verdict_side){.scores = w->scores + next, .resampled = w->resampled + next};
    w->incomplete[g] = w->elsewhere[g] = false;
    for (size_t i = 0; i < group->run_count; i++) {
      size_t run = group->runs[i];
      const bool counts = r->runs[run].state == TARN_RESULTS_FINISHED && is_among(r, r->runs[run].seed, seeds);
      const bool scored = !isnan(tarn__judging_score(w, run));
      if (counts && is_elsewhere(w, run)) w->elsewhere[g] = w->elsewhere[g] || scored || measures[w->measure].whole;
      if (!counts || is_elsewhere(w, run) || !scored) continue;
      w->scores[next] = tarn__judging_score(w, run);
      w->seeds[next] = r->runs[run].seed;
      w->resampled[next] = resampled ? w->outputs->resampled[run] : NULL;
      w->incomplete[g] = w->incomplete[g] || (w->outputs && !w->resampled[next]);
      next++;
      side->runs++;
    }
  }
}

static double mean_of(const tarn__verdict_side *side) {
  double sum = 0;
  for (size_t i = 0; i < side->runs; i++) sum += side->scores[i];
  return sum / (double)side->runs;
}

// No verdict, but the difference of the means that the table shows.
static void lack(tarn_results_verdict *v, const tarn__judging *w, size_t a, size_t b, tarn_results_basis basis) {
  *v = tarn__verdict_none(w->sides[a].runs, w->sides[b].runs, w->test.less);
  v->basis = basis;
  v->difference = mean_of(&w->sides[a]) - mean_of(&w->sides[b]);
}

// Whether a side has too few runs for a verdict, and others on another processor.
static bool is_short(const tarn__judging *w, size_t side) { return w->elsewhere[side] && w->sides[side].runs < 3; }

void tarn__judging_judge(tarn_results_verdict *v, tarn__judging *w, size_t a, size_t b) {
  const bool complete = w->comparable && !w->incomplete[a] && !w->incomplete[b];
  tarn__verdict_test test = w->test;
  if (!complete) test.resamples = 0;  // one of the sides may lack its list
  tarn__verdict_of(v, &w->sides[a], &w->sides[b], &test);
  const bool few =
      v->basis == TARN_RESULTS_NO_SCORES || v->basis == TARN_RESULTS_ONE_SEED || v->basis == TARN_RESULTS_TWO_SEEDS;
  if (few && (is_short(w, a) || is_short(w, b))) v->basis = TARN_RESULTS_OTHER_PROCESSORS;
  if (complete || v->basis == TARN_RESULTS_NO_SCORES) return;
  const tarn_results_basis items = w->table->options.resamples > 0 ? TARN_RESULTS_NO_ITEMS : TARN_RESULTS_NO_RESAMPLES;
  lack(v, w, a, b, w->comparable ? items : w->other);
}

// The differences between runs of common seeds.
static tarn_status by_seed(tarn_results_verdict *v, const tarn__judging *w, size_t a, size_t b) {
  void *seeds;
  void *differences;
  const size_t first_a = (size_t)(w->sides[a].scores - w->scores);
  const size_t first_b = (size_t)(w->sides[b].scores - w->scores);
  TARN_TRY(tarn__arena_alloc(&w->table->arena, &seeds, w->sides[a].runs, sizeof *v->seeds));
  TARN_TRY(tarn__arena_alloc(&w->table->arena, &differences, w->sides[a].runs, sizeof *v->by_seed));
  v->seeds = seeds;
  v->by_seed = differences;
  for (size_t i = 0; i < w->sides[a].runs; i++) {
    for (size_t j = 0; j < w->sides[b].runs; j++) {
      if (w->seeds[first_a + i] != w->seeds[first_b + j]) continue;
      ((int64_t *)seeds)[v->seed_count] = w->seeds[first_a + i];
      ((double *)differences)[v->seed_count++] = w->scores[first_a + i] - w->scores[first_b + j];
    }
  }
  return TARN_STATUS_OK;
}

// The row with the best mean, if it is significantly better than every other row. None if one has its runs elsewhere.
static size_t leader_of(tarn__judging *w) {
  const size_t count = w->table->results->group_count;
  const double sign = w->test.less ? -1 : 1;
  size_t best = count;
  for (size_t g = 0; g < count; g++)
    if (w->sides[g].runs > 0 && (best == count || sign * mean_of(&w->sides[g]) > sign * mean_of(&w->sides[best])))
      best = g;
  if (w->table->public.judged[w->measure].rows < 2 || measures[w->measure].neutral) return count;
  for (size_t g = 0; g < count; g++) {
    tarn_results_verdict v;
    if (w->sides[g].runs == 0 && w->elsewhere[g]) return count;
    if (g == best || w->sides[g].runs == 0) continue;
    tarn__judging_judge(&v, w, best, g);
    if (!tarn__verdict_leads(&v, w->table->public.judged[w->measure].rows - 1)) return count;
  }
  return best;
}

static bool is_energy(int measure) {
  return measure == TARN_RESULTS_JUDGED_EPOCH_JOULES || measure == TARN_RESULTS_JUDGED_BEST_JOULES;
}

// Losses include label smoothing; a table by another score may have runs that differ in it, or in what they predict,
// and has a note then.
static bool is_comparable(const struct tarn__results_table_memory *t, int measure) {
  const bool same = !t->other_smoothing && !t->other_predictions;
  if (measure == TARN_RESULTS_JUDGED_MIN_LOSS) return same && !t->other_losses;
  if (is_energy(measure)) return !t->other_sources;
  const bool training =
      measure == TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS || measure == TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS;
  return !training || same;
}

// The design decides, so that no table says otherwise by tests that count no looks.
static tarn_status judge_by_plan(tarn_results_judged *judged, tarn_results_verdict *verdicts, tarn__judging *w) {
  struct tarn__results_table_memory *t = w->table;
  const size_t baseline = t->public.baseline;
  TARN_TRY(tarn__table_sequential(w));
  judged->planned = true;
  judged->leader = t->results->group_count;
  judged->comparisons = 0;
  for (size_t g = 0; g < t->results->group_count; g++) {
    if (g == baseline || verdicts[g].basis == TARN_RESULTS_NO_SCORES) continue;
    const int64_t seeds = t->public.sequential[g].seeds;
    TARN_TRY(tarn__table_planned(&verdicts[g], w, g));
    judged->comparisons = verdicts[g].comparisons;
    if (seeds == 0) continue;
    tarn__judging_collect(w, (size_t)seeds);
    verdicts[g].runs = w->sides[g].runs;
    verdicts[g].other_runs = w->sides[baseline].runs;
    verdicts[g].seed_count = 0;
    TARN_TRY(by_seed(&verdicts[g], w, g, baseline));
  }
  return TARN_STATUS_OK;
}

static tarn_status judge_measure(struct tarn__results_table_memory *t, int measure, const tarn__test_outputs *outputs) {
  const size_t count = t->results->group_count;
  const tarn_measure *tested = t->public.test_measure;
  const bool less = measure == TARN_RESULTS_JUDGED_BEST         ? t->public.less
                    : measure == TARN_RESULTS_JUDGED_TEST_SCORE ? tested && tested->less
                                                                : measures[measure].less;
  tarn__judging w = {.table = t,
                     .measure = measure,
                     .offset = measures[measure].offset,
                     .outputs = outputs,
                     .test = {.less = less},
                     .comparable = is_comparable(t, measure),
                     .other = is_energy(measure) ? TARN_RESULTS_OTHER_SOURCES : TARN_RESULTS_OTHER_LOSSES};
  tarn_results_judged *judged = &t->public.judged[measure];
  void *memory;
  if (outputs && outputs->items > 0) {
    w.test.resamples = t->options.resamples;
    w.test.items = outputs->items;
  }
  TARN_TRY(take(&w));
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, count, sizeof(tarn_results_verdict)));
  tarn_results_verdict *verdicts = memory;
  *judged = (tarn_results_judged){
      .key = measures[measure].key, .less = less, .neutral = measures[measure].neutral, .verdicts = verdicts};
  tarn__judging_collect(&w, 0);
  for (size_t g = 0; g < count; g++) judged->rows += w.sides[g].runs > 0;
  const size_t baseline = t->public.baseline;
  for (size_t g = 0; g < count; g++) {
    tarn__judging_judge(&verdicts[g], &w, g, baseline);
    if (g != baseline) TARN_TRY(by_seed(&verdicts[g], &w, g, baseline));
    if (g == baseline) verdicts[g].p_single = NAN;
  }
  judged->comparisons = tarn__verdict_correct(verdicts, count);
  for (size_t g = 0; g < count; g++)
    verdicts[g].words = g == baseline ? "baseline" : tarn__judging_words(&w, &verdicts[g]);
  judged->leader = leader_of(&w);
  return measure == tarn__table_sequential_measure(t) ? judge_by_plan(judged, verdicts, &w) : TARN_STATUS_OK;
}

tarn_status tarn__table_verdicts(struct tarn__results_table_memory *t) {
  tarn__test_outputs outputs[TARN_RESULTS_JUDGED_MEASURES] = {{0}};
  tarn_status status = TARN_STATUS_OK;
  if (t->options.resamples > 0) {
    status = tarn__test_outputs_bleu(&outputs[TARN_RESULTS_JUDGED_TEST_BLEU], t);
    if (status == TARN_STATUS_OK) status = tarn__test_outputs_chrf(&outputs[TARN_RESULTS_JUDGED_TEST_CHRF], t);
    if (status == TARN_STATUS_OK) status = tarn__test_outputs_blimp(&outputs[TARN_RESULTS_JUDGED_TEST_BLIMP], t);
  }
  for (int m = 0; m < TARN_RESULTS_JUDGED_MEASURES && status == TARN_STATUS_OK; m++)
    status = judge_measure(t, m, measures[m].tested ? &outputs[m] : NULL);
  for (int m = 0; m < TARN_RESULTS_JUDGED_MEASURES; m++) tarn__test_outputs_close(&outputs[m]);
  TARN_TRY(status);
  if (t->public.sequential || t->results->memory->plans == 0) return TARN_STATUS_OK;
  return tarn__table_note(t,
                          "these verdicts count no looks; those of a sequential design are shown when its sweep is "
                          "compared alone, with its own baseline and without --metric, --budget and --resamples 0");
}

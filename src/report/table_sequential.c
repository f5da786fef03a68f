// The verdicts of a sweep's sequential design: every look judges the runs of its seeds like the table judges all.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "report/judge.h"
#include "run/names.h"
#include "run/run_file.h"
#include "significance/sequential.h"

int tarn__table_sequential_measure(const struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const tarn_results_options *o = &t->options;
  const tarn_sequential_design *design = &r->sequential;
  if (design->max_seeds == 0 || r->group_count < 2 || t->public.baseline != r->baseline) return -1;
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) {
    const char *key = t->public.judged[m].key;
    if (!key || strcmp(key, design->measure) != 0) continue;
    const bool chosen = m == TARN_RESULTS_JUDGED_BEST || m == TARN_RESULTS_JUDGED_AUCC;
    const bool tested = m < TARN_RESULTS_JUDGED_BEST;
    // A design is of one measure: not of one that the caller chose.
    return (chosen && o->metric) || o->budget > 0 || (tested && o->resamples == 0) ? -1 : m;
  }
  return -1;
}

// A run that failed has no score, and one whose test failed; one that is not tested yet is not over.
static bool is_run_over(const tarn__judging *w, size_t index) {
  const tarn_results_run *run = &w->table->results->runs[index];
  char path[PATH_MAX];
  if (run->state != TARN_RESULTS_FINISHED) return run->state == TARN_RESULTS_FAILED;
  if (w->measure >= TARN_RESULTS_JUDGED_BEST || !isnan(tarn__judging_score(w, index))) return true;
  return tarn__path_join(path, run->path, TARN__RUN_TEST) == TARN_STATUS_OK && tarn__file_exists(path);
}

// Whether the runs of a group with the first seeds are over.
static bool is_over(const tarn__judging *w, size_t group, int64_t seeds) {
  const tarn_results *r = w->table->results;
  const tarn_results_group *g = &r->groups[group];
  for (int64_t s = 0; s < seeds; s++) {
    bool over = false;
    for (size_t i = 0; i < g->run_count && !over; i++)
      over = r->runs[g->runs[i]].seed == r->seeds[s] && is_run_over(w, g->runs[i]);
    if (!over) return false;
  }
  return true;
}

static void take_looks(tarn__sequential_looks *looks, tarn__judging *w) {
  const tarn_results *r = w->table->results;
  const size_t baseline = w->table->public.baseline;
  for (size_t k = 0; k < r->sequential.look_count && is_over(w, baseline, r->sequential.looks[k]); k++) {
    tarn__judging_collect(w, (size_t)r->sequential.looks[k]);
    for (size_t g = 0, i = 0; g < r->group_count; g++) {
      if (g == baseline) continue;
      tarn__sequential_looks *own = &looks[i++];
      if (own->count < k || !is_over(w, g, r->sequential.looks[k])) continue;
      tarn__judging_judge(&own->at[k], w, g, baseline);
      own->at[k].words = tarn__judging_words(w, &own->at[k]);
      own->count = k + 1;
    }
  }
}

static tarn_status judge_looks(tarn_sequential_verdict *verdicts, tarn__sequential_looks *looks, tarn__judging *w) {
  const tarn_results *r = w->table->results;
  const size_t baseline = w->table->public.baseline;
  take_looks(looks, w);
  TARN_TRY(tarn__sequential_judge(verdicts, looks, r->group_count - 1, &r->sequential));
  // In the order of the rows, with the baseline's place between them.
  for (size_t g = r->group_count - 1; g > baseline; g--) verdicts[g] = verdicts[g - 1];
  verdicts[baseline] = (tarn_sequential_verdict){0};
  return TARN_STATUS_OK;
}

static tarn_results_decision decision_of(const tarn_sequential_verdict *s) {
  if (s->decision == TARN_SEQUENTIAL_BETTER) return TARN_RESULTS_BETTER;
  if (s->decision == TARN_SEQUENTIAL_WORSE) return TARN_RESULTS_WORSE;
  return s->obstacle ? TARN_RESULTS_NONE : TARN_RESULTS_UNDECIDED;
}

tarn_status tarn__table_planned(tarn_results_verdict *v, tarn__judging *w, size_t group) {
  struct tarn__results_table_memory *t = w->table;
  const tarn_sequential_verdict *s = &t->public.sequential[group];
  char words[TARN_SEQUENTIAL_TEXT];
  char *copy;
  tarn_sequential_words(words, s, &t->results->sequential);
  TARN_TRY(tarn__arena_strdup(&t->arena, &copy, words));
  v->words = copy;
  v->decision = decision_of(s);
  v->p = s->looks > 0 ? s->p : NAN;
  v->p_single = s->looks > 0 ? s->p_single : NAN;
  v->comparisons = s->comparisons;
  if (!s->obstacle) v->basis = TARN_RESULTS_CONFIGURATIONS;
  v->low = s->low;
  v->high = s->high;
  v->error = s->error;
  v->seed_error = s->seed_error;
  v->freedom = s->freedom;
  if (s->looks > 0) v->difference = s->difference;  // else that of the runs so far
  return TARN_STATUS_OK;
}

tarn_status tarn__table_sequential(tarn__judging *w) {
  struct tarn__results_table_memory *t = w->table;
  const size_t count = t->results->group_count;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, count, sizeof(tarn_sequential_verdict)));
  tarn_sequential_verdict *verdicts = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count - 1, sizeof(tarn__sequential_looks)));
  const tarn_status status = judge_looks(verdicts, memory, w);
  tarn__free(memory);
  TARN_TRY(status);
  t->public.sequential = verdicts;
  t->public.sequential_measure = (tarn_results_judged_measure)w->measure;
  return tarn__table_note(
      t,
      "%s is judged by the sweep's sequential design: its p and intervals count the looks, and runs "
      "behind the latest look are not in them; those of other scores count no looks",
      t->results->sequential.measure);
}

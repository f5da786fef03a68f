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

// The names of the variants with one of these decisions.
static tarn_status names_of(const char **names, struct tarn__results_table_memory *t, tarn_sequential_decision first,
                            tarn_sequential_decision last) {
  const tarn_results *r = t->results;
  *names = "";
  for (size_t g = 0; g < r->group_count; g++) {
    const tarn_sequential_decision decision = t->public.sequential[g].decision;
    if (g == t->public.baseline || decision < first || decision > last) continue;
    TARN_TRY(tarn__arena_print(names, &t->arena, "%s%s%s", *names, **names ? ", " : "", r->groups[g].name));
  }
  if (!**names) *names = "none";
  return TARN_STATUS_OK;
}

// For tables and pages whose verdicts are those of a single look.
static tarn_status note(struct tarn__results_table_memory *t) {
  const tarn_sequential_design *d = &t->results->sequential;
  const bool neutral = tarn__sequential_is_neutral(d);
  const char *better, *worse, *equivalent, *closed, *open;
  TARN_TRY(names_of(&better, t, TARN_SEQUENTIAL_BETTER, TARN_SEQUENTIAL_BETTER));
  TARN_TRY(names_of(&worse, t, TARN_SEQUENTIAL_WORSE, TARN_SEQUENTIAL_WORSE));
  TARN_TRY(names_of(&equivalent, t, TARN_SEQUENTIAL_EQUIVALENT, TARN_SEQUENTIAL_EQUIVALENT));
  TARN_TRY(names_of(&closed, t, TARN_SEQUENTIAL_FULL, TARN_SEQUENTIAL_HOPELESS));
  TARN_TRY(names_of(&open, t, TARN_SEQUENTIAL_OPEN, TARN_SEQUENTIAL_OPEN));
  return tarn__table_note(
      t,
      "the sweep is looked at up to %zu times, which p of other tables does not count; with the looks "
      "counted, by %s: %s %s; %s %s; equivalent %s; closed without a verdict %s; open %s",
      d->look_count, d->measure, tarn__verdict_word(true, neutral, false), better,
      tarn__verdict_word(false, neutral, false), worse, equivalent, closed, open);
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
  return note(t);
}

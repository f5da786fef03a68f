// A table with runs of several processors: what is measured in time is of the runs on one of them.
#include <math.h>

#include "report/results_memory.h"
#include "report/table_build.h"

bool tarn__table_elsewhere(const struct tarn__results_table_memory *t, size_t run) {
  return t->on && !tarn__results_same_processor(t->on, &t->results->runs[run]);
}

double tarn__table_budget(const struct tarn__results_table_memory *t, size_t run) {
  if (t->longest && tarn__table_elsewhere(t, run)) return tarn__table_end(&t->results->runs[run]);
  return t->public.budget;
}

// "A (26), B (18)": all processors with their numbers of finished runs.
static tarn_status name_all(struct tarn__results_table_memory *t, const char **names) {
  const tarn_results *r = t->results;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    bool seen = run->state != TARN_RESULTS_FINISHED;
    size_t count = 0;
    for (size_t k = 0; k < r->run_count && !seen; k++) {
      if (r->runs[k].state != TARN_RESULTS_FINISHED || !tarn__results_same_processor(run, &r->runs[k])) continue;
      seen = k < i;
      count++;
    }
    const char *own;
    if (seen) continue;
    TARN_TRY(tarn__results_processor_text(&own, run, &t->arena));
    TARN_TRY(tarn__arena_print(names, &t->arena, "%s%s%s: %zu", *names, **names ? ", " : "", own, count));
  }
  return TARN_STATUS_OK;
}

static tarn_status find_longest(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  t->public.budget = 0;
  for (size_t i = 0; i < r->run_count; i++)
    if (r->runs[i].state == TARN_RESULTS_FINISHED && !tarn__table_elsewhere(t, i))
      t->public.budget = fmax(t->public.budget, tarn__table_end(&r->runs[i]));
  TARN_REQUIRE(!t->on || t->public.budget > 0, DATA,
               "no run has a budget (train.max_minutes), and none on %s took any time", t->public.processor);
  return tarn__table_note(t,
                          "no run has a budget (train.max_minutes): they are compared over %.4g minutes, the time of "
                          "the longest%s",
                          t->public.budget / 60, t->on ? " on that processor" : "");
}

tarn_status tarn__table_processors(struct tarn__results_table_memory *t) {
  const char *names = "";
  t->on = tarn__results_processor(t->results);
  if (t->on) {
    TARN_TRY(tarn__results_processor_text(&t->public.processor, t->on, &t->arena));
    TARN_TRY(name_all(t, &names));
    TARN_TRY(tarn__table_note(t,
                              "runs are of several processors (%s), so times, energies, areas over time and memory are "
                              "of those on %s alone",
                              names, t->public.processor));
  }
  if (t->on && !t->longest)
    TARN_TRY(tarn__table_note(t, "a faster processor trains further in the same minutes, so the scores depend on it"));
  return t->longest ? find_longest(t) : TARN_STATUS_OK;
}

// Runs of several processors in one table. Times, energies and areas over time also depend on the processor: they are
// compared among runs on one, and where nothing else says how long, over the longest training on it.
#include <math.h>
#include <string.h>

#include "report/table_build.h"
#include "run/run_file.h"

static bool same_processor(const tarn_results_run *a, const tarn_results_run *b) {
  return strcmp(a->processor ? a->processor : "", b->processor ? b->processor : "") == 0;
}

static double longest_beside(const tarn_results *r, const tarn_results_run *run) {
  double longest = 0;
  for (size_t i = 0; i < r->run_count; i++)
    if (r->runs[i].state == TARN_RESULTS_FINISHED && same_processor(run, &r->runs[i]))
      longest = fmax(longest, tarn__table_end(&r->runs[i]));
  return longest;
}

// "A, B", with their T-hat in parentheses where each has its own.
static tarn_status name_all(struct tarn__results_table_memory *t, const char **names) {
  const tarn_results *r = t->results;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    bool seen = run->state != TARN_RESULTS_FINISHED || !run->processor;
    for (size_t k = 0; k < i && !seen; k++)
      seen = r->runs[k].state == TARN_RESULTS_FINISHED && same_processor(run, &r->runs[k]);
    if (seen) continue;
    TARN_TRY(tarn__arena_print(names, &t->arena, "%s%s%s", *names, **names ? ", " : "", run->processor));
    if (t->longest) TARN_TRY(tarn__arena_print(names, &t->arena, "%s (%.4g min)", *names, t->budgets[i] / 60));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__table_processors(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const tarn_results_run *first = NULL;
  const char *names = "";
  void *memory;
  for (size_t i = 0; i < r->run_count; i++) {
    if (r->runs[i].state != TARN_RESULTS_FINISHED || !r->runs[i].processor) continue;
    if (!first) first = &r->runs[i];
    t->other_processors = t->other_processors || !same_processor(first, &r->runs[i]);
  }
  t->own_budgets = t->other_processors && t->longest;
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, r->run_count, sizeof *t->budgets));
  t->budgets = memory;
  for (size_t i = 0; i < r->run_count; i++)
    t->budgets[i] = t->own_budgets ? longest_beside(r, &r->runs[i]) : t->public.budget;
  t->public.least_budget = t->public.budget;
  for (size_t i = 0; i < r->run_count; i++)
    if (r->runs[i].state == TARN_RESULTS_FINISHED) t->public.least_budget = fmin(t->public.least_budget, t->budgets[i]);
  if (t->longest && !t->own_budgets)
    TARN_TRY(tarn__table_note(t,
                              "no run has a budget (train.max_minutes): they are compared over %.4g minutes, the time "
                              "of the longest",
                              t->public.budget / 60));
  if (!t->other_processors) return TARN_STATUS_OK;
  TARN_TRY(name_all(t, &names));
  return tarn__table_note(t,
                          "runs are of several processors, so times, energies and areas over time of two "
                          "configurations are compared on the one that both have most runs on%s: %s",
                          t->own_budgets ? ", and T is the time of the longest run on each" : "", names);
}

// --- runs of one processor

static size_t count_on(const tarn__times *t, const char *processor) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++) count += strcmp(t->processors[i], processor) == 0;
  return count;
}

// That of which the smaller side has most runs; of several the one with most runs of both, then the first by its name,
// so that the sides may change places. NULL: the sides have none in common.
static const char *choose(const tarn__times *a, const tarn__times *b) {
  const char *chosen = NULL;
  size_t most = 0, most_of_both = 0;
  for (size_t i = 0; i < a->count; i++) {
    const char *own = a->processors[i];
    const size_t of_a = count_on(a, own), of_b = count_on(b, own);
    const size_t fewer = of_a < of_b ? of_a : of_b, both = of_a + of_b;
    if (fewer == 0 || fewer < most || (fewer == most && both < most_of_both)) continue;
    if (fewer == most && both == most_of_both && strcmp(own, chosen) >= 0) continue;
    chosen = own;
    most = fewer;
    most_of_both = both;
  }
  return chosen;
}

static void keep(tarn__times *t, const char *processor) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++) {
    if (!processor || strcmp(t->processors[i], processor) != 0) continue;
    t->values[count] = t->values[i];
    t->processors[count++] = processor;
  }
  t->count = count;
}

bool tarn__times_narrow(tarn__times *a, tarn__times *b) {
  const size_t all = a->count + b->count;
  const char *chosen = choose(a, b);
  keep(a, chosen);
  keep(b, chosen);
  return a->count + b->count < all;
}

static tarn_status take_times(tarn__times *times, const struct tarn__results_table_memory *t, size_t group,
                              tarn__arena *arena) {
  const tarn_results_group *g = &t->results->groups[group];
  void *memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, g->run_count, sizeof *times->values));
  *times = (tarn__times){.values = memory};
  TARN_TRY(tarn__arena_alloc(arena, &memory, g->run_count, sizeof *times->processors));
  times->processors = memory;
  for (size_t i = 0; i < g->run_count; i++) {
    const char *processor = t->results->runs[g->runs[i]].processor;
    const double seconds = t->measures[g->runs[i]].best_seconds;
    if (isnan(seconds)) continue;
    times->values[times->count] = seconds;
    times->processors[times->count++] = processor ? processor : "";
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__table_best_times(tarn__times *a, tarn__times *b, const struct tarn__results_table_memory *t,
                                   const size_t groups[2], tarn__arena *arena) {
  TARN_TRY(take_times(a, t, groups[0], arena));
  TARN_TRY(take_times(b, t, groups[1], arena));
  if (t->other_processors) tarn__times_narrow(a, b);
  return TARN_STATUS_OK;
}

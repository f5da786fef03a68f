// Runs of several processors in one table. Times, and areas over time, say which processor is faster too: they are
// compared among runs of one, and where nothing else says how long, over the longest training on it.
#include <math.h>
#include <string.h>

#include "report/judge.h"
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
  if (!t->other_processors) return TARN_STATUS_OK;
  TARN_TRY(name_all(t, &names));
  return tarn__table_note(t,
                          "runs are of several processors, so two configurations' times and areas over time are "
                          "compared among runs of the one of which both have most%s: %s",
                          t->own_budgets ? ", and T is the time of the longest run on it" : "", names);
}

// --- verdicts

static const char *processor_of(const tarn__judging *w, const tarn__verdict_side *side, size_t run) {
  return w->processors[(size_t)(side->scores - w->scores) + run];
}

static size_t count_on(const tarn__judging *w, const tarn__verdict_side *side, const char *processor) {
  size_t count = 0;
  for (size_t i = 0; i < side->runs; i++) count += strcmp(processor_of(w, side, i), processor) == 0;
  return count;
}

// That of which the smaller side has most runs; of several the one with most runs of both, then the first by its name,
// so that the sides may change places. NULL: the sides have none in common.
static const char *choose(const tarn__judging *w, const tarn__verdict_side *a, const tarn__verdict_side *b) {
  const char *chosen = NULL;
  size_t most = 0, most_of_both = 0;
  for (size_t i = 0; i < a->runs; i++) {
    const char *own = processor_of(w, a, i);
    const size_t of_a = count_on(w, a, own), of_b = count_on(w, b, own);
    const size_t fewer = of_a < of_b ? of_a : of_b, both = of_a + of_b;
    if (fewer == 0 || fewer < most || (fewer == most && both < most_of_both)) continue;
    if (fewer == most && both == most_of_both && strcmp(own, chosen) >= 0) continue;
    chosen = own;
    most = fewer;
    most_of_both = both;
  }
  return chosen;
}

static void keep(tarn__verdict_side *side, const tarn__judging *w, double *scores, const char *processor) {
  size_t count = 0;
  for (size_t i = 0; i < side->runs; i++)
    if (processor && strcmp(processor_of(w, side, i), processor) == 0) scores[count++] = side->scores[i];
  *side = (tarn__verdict_side){.scores = scores, .runs = count};
}

bool tarn__judging_narrow(tarn__verdict_side *a, tarn__verdict_side *b, const tarn__judging *w) {
  if (!w->timed || !w->table->other_processors || a->runs == 0 || b->runs == 0) return false;
  const size_t all = a->runs + b->runs;
  const char *chosen = choose(w, a, b);
  if (chosen && count_on(w, a, chosen) + count_on(w, b, chosen) == all) return false;
  const size_t first = a->runs;
  keep(a, w, w->kept, chosen);
  keep(b, w, w->kept + first, chosen);
  return true;
}

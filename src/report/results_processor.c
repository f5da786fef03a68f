// Runs of several processors. Their times cannot be compared: what is measured in time is of the runs on one.
#include <string.h>

#include "report/results_memory.h"

static bool same_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

static bool is_finished(const tarn_results_run *run) { return run->state == TARN_RESULTS_FINISHED; }

bool tarn__results_same_processor(const tarn_results_run *a, const tarn_results_run *b) {
  return same_text(a->processor, b->processor) && same_text(a->kernels, b->kernels) && a->threads == b->threads;
}

// What a processor has: the more of the first of these the better, and so on.
typedef struct rank {
  bool known;     // runs that do not say where they ran may be of any processors
  size_t judged;  // configurations with enough runs for verdicts on times, if the baseline has enough too
  size_t groups;  // configurations with runs
  size_t runs;
} rank;

enum { ENOUGH = 3 };

static size_t count_runs(const tarn_results *results, size_t group, const tarn_results_run *run) {
  const tarn_results_group *g = &results->groups[group];
  size_t count = 0;
  for (size_t i = 0; i < g->run_count; i++) {
    const tarn_results_run *other = &results->runs[g->runs[i]];
    count += is_finished(other) && tarn__results_same_processor(other, run);
  }
  return count;
}

static rank rank_of(const tarn_results *results, const tarn_results_run *run) {
  rank r = {.known = run->processor != NULL};
  const size_t baseline = results->baseline < results->group_count ? results->baseline : 0;
  const bool compared = count_runs(results, baseline, run) >= ENOUGH;
  for (size_t g = 0; g < results->group_count; g++) {
    const size_t count = count_runs(results, g, run);
    r.judged += compared && g != baseline && count >= ENOUGH;
    r.groups += count > 0;
    r.runs += count;
  }
  return r;
}

static bool is_better(const rank *a, const rank *b) {
  if (a->known != b->known) return a->known;
  if (a->judged != b->judged) return a->judged > b->judged;
  if (a->groups != b->groups) return a->groups > b->groups;
  return a->runs > b->runs;
}

const tarn_results_run *tarn__results_processor(const tarn_results *results) {
  const tarn_results_run *chosen = NULL;
  rank best = {0};
  size_t processors = 0;
  for (size_t i = 0; i < results->run_count; i++) {
    const tarn_results_run *run = &results->runs[i];
    bool seen = !is_finished(run);
    for (size_t k = 0; k < i && !seen; k++)
      seen = is_finished(&results->runs[k]) && tarn__results_same_processor(&results->runs[k], run);
    if (seen) continue;
    const rank own = rank_of(results, run);
    processors++;
    if (chosen && !is_better(&own, &best)) continue;
    chosen = run;
    best = own;
  }
  return processors > 1 ? chosen : NULL;
}

tarn_status tarn__results_processor_text(const char **text, const tarn_results_run *run, tarn__arena *arena) {
  const char *processor = run->processor ? run->processor : "unknown";
  const char *kernels = run->kernels ? run->kernels : "";
  if (run->threads <= 0)  // not recorded
    return tarn__arena_print(text, arena, *kernels ? "%s (%s)" : "%s", processor, kernels);
  return tarn__arena_print(text, arena, "%s (%s%s%lld thread%s)", processor, kernels, *kernels ? ", " : "",
                           (long long)run->threads, run->threads == 1 ? "" : "s");
}

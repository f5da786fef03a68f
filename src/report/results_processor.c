// Runs of several processors. Their times cannot be compared: what is measured in time is of the runs on one.
#include <string.h>

#include "report/results_memory.h"

static bool same_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

static bool is_finished(const tarn_results_run *run) { return run->state == TARN_RESULTS_FINISHED; }

bool tarn__results_same_processor(const tarn_results_run *a, const tarn_results_run *b) {
  return same_text(a->processor, b->processor) && same_text(a->kernels, b->kernels) && a->threads == b->threads;
}

// How many configurations have finished runs where this one ran, and how many runs.
static size_t count_groups(const tarn_results *results, const tarn_results_run *run, size_t *runs) {
  size_t count = 0;
  *runs = 0;
  for (size_t g = 0; g < results->group_count; g++) {
    size_t own = 0;
    for (size_t i = 0; i < results->groups[g].run_count; i++) {
      const tarn_results_run *other = &results->runs[results->groups[g].runs[i]];
      own += is_finished(other) && tarn__results_same_processor(other, run);
    }
    count += own > 0;
    *runs += own;
  }
  return count;
}

const tarn_results_run *tarn__results_processor(const tarn_results *results) {
  const tarn_results_run *chosen = NULL;
  size_t most = 0, most_runs = 0, processors = 0;
  for (size_t i = 0; i < results->run_count; i++) {
    const tarn_results_run *run = &results->runs[i];
    bool seen = !is_finished(run);
    for (size_t k = 0; k < i && !seen; k++)
      seen = is_finished(&results->runs[k]) && tarn__results_same_processor(&results->runs[k], run);
    if (seen) continue;
    size_t runs;
    const size_t groups = count_groups(results, run, &runs);
    processors++;
    // Runs that do not say where they ran may be of any processors.
    const bool known = run->processor != NULL, known_before = chosen && chosen->processor;
    const bool better =
        known != known_before || !chosen ? known || !chosen : groups > most || (groups == most && runs > most_runs);
    if (!better) continue;
    chosen = run;
    most = groups;
    most_runs = runs;
  }
  return processors > 1 ? chosen : NULL;
}

tarn_status tarn__results_processor_text(const char **text, const tarn_results_run *run, tarn__arena *arena) {
  return tarn__arena_print(text, arena, "%s (%s%s%lld thread%s)", run->processor ? run->processor : "unknown",
                           run->kernels ? run->kernels : "", run->kernels ? ", " : "", (long long)run->threads,
                           run->threads == 1 ? "" : "s");
}

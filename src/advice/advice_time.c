// The time of an update of a variant over that of its baseline, from the logs of runs that can be compared.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advice/advice_memory.h"
#include "run/names.h"
#include "run/run_file.h"

// Finished runs of a group: seconds of an update, NAN if the log does not have them, and what they ran on.
typedef struct timing {
  double *seconds;
  const char **machine;  // processor, kernels and threads
  size_t count;
} timing;

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  if (count == 0) return NAN;
  qsort(values, count, sizeof *values, by_value);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

// The median over the lines of a log, each of several updates: other work disturbs some of them.
static tarn_status update_of_run(double *seconds, const tarn_results_run *run, tarn__arena *arena) {
  const tarn_results_series *s = tarn_results_find(run, "train/loss");
  void *memory;
  *seconds = NAN;
  if (!s) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(arena, &memory, s->count, sizeof(double)));
  double *values = memory;
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const int64_t steps = s->points[i].step - (i ? s->points[i - 1].step : 0);
    if (steps > 0) values[count++] = (s->points[i].seconds - (i ? s->points[i - 1].seconds : 0)) / (double)steps;
  }
  *seconds = median(values, count);
  return TARN_STATUS_OK;
}

static tarn_status machine_of_run(const char **machine, const tarn_results_run *run, tarn__arena *arena) {
  tarn__run_file file = {0};
  bool exists;
  const char *processor = "", *kernels = "";
  TARN_TRY(tarn__run_file_open(&file, &exists, run->path, TARN__RUN_RESULT, arena));
  tarn_status status = TARN_STATUS_OK;
  if (exists) status = tarn__run_file_text(&file, file.root, "processor", &processor, arena);
  if (exists && status == TARN_STATUS_OK) status = tarn__run_file_text(&file, file.root, "kernels", &kernels, arena);
  if (status == TARN_STATUS_OK)
    status = tarn__arena_print(machine, arena, "%s, %s, %lld", processor, kernels, (long long)run->threads);
  tarn__run_file_close(&file);
  return status;
}

static tarn_status take(timing *t, const tarn_results *r, size_t group, tarn__arena *arena) {
  const tarn_results_group *g = &r->groups[group];
  void *memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, g->run_count, sizeof(double)));
  t->seconds = memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, g->run_count, sizeof(char *)));
  t->machine = memory;
  for (size_t i = 0; i < g->run_count; i++) {
    const tarn_results_run *run = &r->runs[g->runs[i]];
    if (run->state != TARN_RESULTS_FINISHED) continue;
    TARN_TRY(update_of_run(&t->seconds[t->count], run, arena));
    if (isnan(t->seconds[t->count])) continue;
    TARN_TRY(machine_of_run(&t->machine[t->count], run, arena));
    t->count++;
  }
  return TARN_STATUS_OK;
}

// Copies the times of the runs on a machine, and returns how many they are.
static size_t on_machine(double *values, const timing *t, const char *machine) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++)
    if (strcmp(t->machine[i], machine) == 0) values[count++] = t->seconds[i];
  return count;
}

static tarn_status compare(double *share, const tarn_results *r, size_t group, tarn__arena *arena) {
  timing own = {0}, base = {0};
  void *memory;
  size_t most = 0;
  *share = NAN;
  TARN_TRY(take(&own, r, group, arena));
  TARN_TRY(take(&base, r, r->baseline, arena));
  TARN_TRY(tarn__arena_alloc(arena, &memory, own.count + base.count, sizeof(double)));
  double *values = memory;
  for (size_t i = 0; i < own.count; i++) {
    const size_t count = on_machine(values, &own, own.machine[i]);
    const size_t others = on_machine(values + own.count, &base, own.machine[i]);
    const size_t fewer = count < others ? count : others;
    const double time = median(values, count), other = median(values + own.count, others);
    if (fewer <= most || !(other > 0)) continue;
    most = fewer;
    *share = time / other;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__advice_update_share(double *share, const tarn_results *results, size_t group) {
  tarn__arena arena = {0};
  const tarn_status status = compare(share, results, group, &arena);
  tarn__arena_close(&arena);
  return status;
}

// Selects the point of a grid with the best validation to represent its variant.
#include <math.h>
#include <string.h>

#include "report/results_memory.h"
#include "run/run_file.h"
#include "tarn/measure.h"

static double best_validation(const tarn_results_run *run) {
  const tarn_results_series *series = run->metric ? tarn_results_find(run, run->metric) : NULL;
  double best = NAN;
  for (size_t i = 0; series && i < series->count; i++) {
    const double value = series->points[i].value;
    if (series->points[i].step == 0) continue;  // untrained
    if (isnan(best) || (series->less ? value < best : value > best)) best = value;
  }
  return best;
}

// The mean over finished runs of the best validation by valid.metric, and whether less is better; NAN: none.
static double score_of(const struct tarn__results_memory *m, const tarn_results_group *group, bool *less) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < group->run_count; i++) {
    const tarn_results_run *run = &m->runs[group->runs[i]];
    const tarn_measure *measure = run->metric ? tarn_measure_find(run->metric) : NULL;
    const double best = best_validation(run);
    if (run->state != TARN_RESULTS_FINISHED || isnan(best)) continue;
    if (measure) *less = measure->less;
    sum += best;
    count++;
  }
  return count ? sum / (double)count : NAN;
}

static bool same_grid(const struct tarn__results_memory *m, size_t a, size_t b) {
  const char *one = m->groups[a].grid;
  const char *other = m->groups[b].grid;
  return one && other && strcmp(one, other) == 0;
}

// The point of g's grid with the best score, the first one of ties, or g itself if none has a score. Points with fewer
// failed runs come first: if some seeds fail, the mean of the others is too optimistic.
static size_t best_of(const struct tarn__results_memory *m, const tarn_results_group *groups, size_t g) {
  size_t best = g;
  double value = NAN;
  for (size_t i = g; i < m->group_count; i++) {
    bool less = true;
    if (!same_grid(m, g, i)) continue;
    const double score = score_of(m, &groups[i], &less);
    if (isnan(score)) continue;
    const bool more_failed = groups[i].failed > groups[best].failed,
               fewer_failed = groups[i].failed < groups[best].failed;
    const bool better = fewer_failed || (!more_failed && (less ? score < value : score > value));
    if (!isnan(value) && !better) continue;
    best = i;
    value = score;
  }
  return best;
}

// The score of a point that was not chosen, and its number of failed runs.
static tarn_status describe_other(const char **text, struct tarn__results_memory *m, const tarn_results_group *group,
                                  double score, int digits) {
  if (isnan(score))
    TARN_TRY(tarn__arena_print(text, &m->arena, "%s; %s: none finished", *text, group->grid));
  else
    TARN_TRY(tarn__arena_print(text, &m->arena, "%s; %s: %.*f", *text, group->grid, digits, score));
  if (isnan(score) || group->failed == 0) return TARN_STATUS_OK;
  return tarn__arena_print(text, &m->arena, "%s, but %zu of %zu runs failed", *text, group->failed, group->run_count);
}

// "train.lr=0.0005, best of a grid of 2 by validation through tarn sweep (accuracy 0.8421; train.lr=0.0001: 0.8312)"
static tarn_status describe(struct tarn__results_memory *m, tarn_results_group *groups, size_t chosen) {
  const char *others = "";
  const char *own = "no run has finished";
  size_t points = 0, open = 0;
  for (size_t i = 0; i < m->group_count; i++) {
    bool less;
    const double score = score_of(m, &groups[i], &less);
    if (!same_grid(m, chosen, i)) continue;
    points++;
    open += groups[i].finished + groups[i].failed < groups[i].run_count;
    const char *metric = groups[i].run_count ? m->runs[groups[i].runs[0]].metric : NULL;
    const tarn_measure *measure = metric ? tarn_measure_find(metric) : NULL;
    const int digits = measure ? measure->digits : 4;
    if (i == chosen && !isnan(score))
      TARN_TRY(tarn__arena_print(&own, &m->arena, "%s %.*f", measure ? measure->name : "score", digits, score));
    if (i != chosen) TARN_TRY(describe_other(&others, m, &groups[i], score, digits));
  }
  TARN_TRY(tarn__arena_print(&groups[chosen].chosen, &m->arena,
                             "%s, best of a grid of %zu by validation through tarn sweep (%s%s)%s", groups[chosen].grid,
                             points, own, others, open ? "; not all of its runs have finished" : ""));
  groups[chosen].name = m->groups[chosen].grid;
  return TARN_STATUS_OK;
}

// Removes the groups that are not `kept` from the lists, with their runs.
static tarn_status compact(struct tarn__results_memory *m, tarn_results_group *groups, const bool *kept) {
  void *memory;
  size_t runs = 0, count = 0;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->count, sizeof *m->runs));
  tarn_results_run *list = memory;
  for (size_t g = 0; g < m->group_count; g++) {
    size_t *indices;
    if (!kept[g]) continue;
    TARN_TRY(tarn__arena_alloc(&m->arena, &memory, groups[g].run_count, sizeof *indices));
    indices = memory;
    for (size_t i = 0; i < groups[g].run_count; i++) {
      indices[i] = runs;
      list[runs] = m->runs[groups[g].runs[i]];
      list[runs++].group = count;
    }
    groups[count] = groups[g];
    groups[count].runs = indices;
    if (m->public.baseline == g) m->public.baseline = count;
    count++;
  }
  if (m->public.baseline != SIZE_MAX && m->public.baseline > count) m->public.baseline = count;
  m->public.runs = list;
  m->public.run_count = runs;
  m->public.group_count = count;
  return TARN_STATUS_OK;
}

tarn_status tarn__results_choose(struct tarn__results_memory *m, tarn_results_group *groups) {
  void *memory;
  bool any = false;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->group_count, sizeof(bool)));
  bool *kept = memory;
  for (size_t g = 0; g < m->group_count; g++) {
    any = any || m->groups[g].grid;
    kept[g] = !m->groups[g].grid;
  }
  for (size_t g = 0; g < m->group_count; g++) {
    bool first = m->groups[g].grid != NULL;
    for (size_t i = 0; i < g; i++) first = first && !same_grid(m, g, i);
    if (!first) continue;
    const size_t best = best_of(m, groups, g);
    kept[best] = true;
    TARN_TRY(describe(m, groups, best));
    if (m->public.baseline != SIZE_MAX && same_grid(m, m->public.baseline, g)) m->public.baseline = best;
  }
  return any ? compact(m, groups, kept) : TARN_STATUS_OK;
}

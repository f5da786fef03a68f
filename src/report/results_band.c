// Mean and spread of a configuration's curves.
#include <math.h>

#include "base/status.h"
#include "report/results_memory.h"

static double place_of(const tarn_results_point *p, tarn_results_axis axis) {
  return axis == TARN_RESULTS_SECONDS ? p->seconds : (double)p->step;
}

// The value at x, or NAN outside the curve.
static double value_at(const tarn_results_series *series, tarn_results_axis axis, double x) {
  const tarn_results_point *p = series->points;
  size_t low = 0;
  size_t high = series->count - 1;
  if (x < place_of(&p[low], axis) || x > place_of(&p[high], axis)) return NAN;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (place_of(&p[middle], axis) <= x)
      low = middle;
    else
      high = middle;
  }
  double width = place_of(&p[high], axis) - place_of(&p[low], axis);
  if (width <= 0) return p[high].value;
  double share = (x - place_of(&p[low], axis)) / width;
  return (1 - share) * p[low].value + share * p[high].value;
}

// What a curve is of: a score of a group's finished runs, on the processor of one of them if it is not NULL.
typedef struct curve {
  const tarn_results *results;
  const tarn_results_group *group;
  const char *name;
  const tarn_results_run *on;
  tarn_results_axis axis;
} curve;

static const tarn_results_series *series_of(const curve *c, size_t run) {
  const tarn_results_run *r = &c->results->runs[run];
  if (c->on && !tarn__results_same_processor(c->on, r)) return NULL;
  return r->state == TARN_RESULTS_FINISHED ? tarn_results_find(r, c->name) : NULL;
}

// Mean and spread at one x; false if no run has a value.
static bool spread(tarn_results_band_point *out, const curve *c, double x) {
  *out = (tarn_results_band_point){.x = x, .low = INFINITY, .high = -INFINITY};
  double sum = 0;
  double squares = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < c->group->run_count; i++) {
      const tarn_results_series *series = series_of(c, c->group->runs[i]);
      double value = series ? value_at(series, c->axis, x) : NAN;
      if (isnan(value)) continue;
      if (pass == 1) {
        squares += (value - out->mean) * (value - out->mean);
        continue;
      }
      sum += value;
      out->count++;
      out->low = fmin(out->low, value);
      out->high = fmax(out->high, value);
    }
    if (out->count == 0) return false;
    out->mean = sum / (double)out->count;
  }
  if (out->count > 1) out->sd = sqrt(squares / (double)(out->count - 1));
  return true;
}

tarn_status tarn_results_band(tarn_results_band_point *points, size_t *count, size_t size, const tarn_results *results,
                              size_t group, const char *name, tarn_results_axis axis, double limit) {
  *count = 0;
  TARN_REQUIRE(group < results->group_count && size >= 2 && limit >= 0 && isfinite(limit), USAGE,
               "a band needs one of the groups, 2 points or more, and a limit from 0 on");
  TARN_REQUIRE(axis == TARN_RESULTS_SECONDS || axis == TARN_RESULTS_STEPS, USAGE, "an unknown axis of a band");
  const tarn_results_group *g = &results->groups[group];
  const tarn_results_run *on = axis == TARN_RESULTS_SECONDS ? tarn__results_processor(results) : NULL;
  const curve c = {results, g, name, on, axis};
  bool farthest = limit == 0;
  for (size_t i = 0; i < g->run_count && farthest; i++) {
    const tarn_results_series *series = series_of(&c, g->runs[i]);
    if (series) limit = fmax(limit, place_of(&series->points[series->count - 1], axis));
  }
  for (size_t i = 0; i < size; i++) {
    double x = i == size - 1 ? limit : (double)i * limit / (double)(size - 1);  // the last one exactly
    if (spread(&points[*count], &c, x)) ++*count;
  }
  return TARN_STATUS_OK;
}

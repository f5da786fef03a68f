// Mean and spread of a configuration's curves.
#include <math.h>

#include "base/status.h"
#include "tarn/lab/results.h"

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

static const tarn_results_series *series_of(const tarn_results *results, size_t run, const char *name) {
  const tarn_results_run *r = &results->runs[run];
  return r->state == TARN_RESULTS_FINISHED ? tarn_results_find(r, name) : NULL;
}

// Mean and spread at one x; false if no run has a value.
static bool spread(tarn_results_band_point *out, const tarn_results *results, const tarn_results_group *group,
                   const char *name, tarn_results_axis axis, double x) {
  *out = (tarn_results_band_point){.x = x, .low = INFINITY, .high = -INFINITY};
  double sum = 0;
  double squares = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < group->run_count; i++) {
      const tarn_results_series *series = series_of(results, group->runs[i], name);
      double value = series ? value_at(series, axis, x) : NAN;
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
  bool farthest = limit == 0;
  for (size_t i = 0; i < g->run_count && farthest; i++) {
    const tarn_results_series *series = series_of(results, g->runs[i], name);
    if (series) limit = fmax(limit, place_of(&series->points[series->count - 1], axis));
  }
  for (size_t i = 0; i < size; i++) {
    double x = i == size - 1 ? limit : (double)i * limit / (double)(size - 1);  // the last one exactly
    if (spread(&points[*count], results, g, name, axis, x)) ++*count;
  }
  return TARN_STATUS_OK;
}

// The runs of a fit: families of configurations, sizes and losses.
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/fit_memory.h"
#include "tarn/measure.h"
#include "tarn/text.h"

static const char *const axis_names[TARN_FIT_AXES] = {"parameters", "trained", "tokens", "text", "operations"};

const char *tarn_fit_axis_name(tarn_fit_axis axis) { return (unsigned)axis < TARN_FIT_AXES ? axis_names[axis] : "?"; }

tarn_status tarn_fit_axis_parse(tarn_fit_axis *axis, const char *name) {
  for (int i = 0; i < TARN_FIT_AXES; i++) {
    if (strcmp(axis_names[i], name) != 0) continue;
    *axis = (tarn_fit_axis)i;
    return TARN_STATUS_OK;
  }
  const char *nearest = tarn_text_nearest(name, axis_names, TARN_FIT_AXES);
  if (nearest) return tarn__fail(TARN_STATUS_USAGE, "there is no axis \"%s\"; did you mean \"%s\"?", name, nearest);
  return tarn__fail(
      TARN_STATUS_USAGE,
      "there is no axis \"%s\"; a size is in parameters, trained (parameters), tokens, text or operations", name);
}

static tarn_status note(struct tarn__fit_memory *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static tarn_status note(struct tarn__fit_memory *m, const char *format, ...) {
  char text[512], *copy;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, text));
  TARN_TRY(tarn__grow(&m->notes, &m->note_capacity, m->public.note_count + 1, sizeof *m->notes));
  m->notes[m->public.note_count++] = copy;
  return TARN_STATUS_OK;
}

enum { NAMED_RUNS = 3 };  // of those left out of a family; the others are counted

static bool is_finished(const tarn_results_run *run) { return run->state == TARN_RESULTS_FINISHED; }

// --- the metric

static tarn_status find_metric(struct tarn__fit_memory *m) {
  const tarn_results *r = m->results;
  const char *metric = m->options.metric;
  size_t finished = 0, with = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    if (!is_finished(&r->runs[i])) continue;
    finished++;
    with += tarn_results_find(&r->runs[i], "valid/nll") != NULL;
  }
  TARN_REQUIRE(finished > 0, USAGE, "there is no finished run to fit a law to");
  if (!metric) metric = with == finished ? "valid/nll" : "valid/loss";
  if (m->options.metric) TARN_TRY(tarn_results_check_name(r, metric));
  for (size_t i = 0; i < r->run_count && !m->public.metric; i++) {
    const tarn_results_series *series = tarn_results_find(&r->runs[i], metric);
    if (!series) continue;
    TARN_REQUIRE(series->less, USAGE, "a law needs a loss, a score of which less is better, and of %s more is",
                 series->name);
    m->public.metric = series->name;
  }
  TARN_REQUIRE(m->public.metric, DATA, "no run has a value of %s; give another --metric", metric);
  return TARN_STATUS_OK;
}

// --- a run as a point

static double last_of(const tarn_results_run *run, const char *name) {
  const tarn_results_series *series = tarn_results_find(run, name);
  return series ? series->points[series->count - 1].value : NAN;
}

static double tokens_of(const tarn_results_run *run) {
  const double source = last_of(run, "train/source_tokens"), target = last_of(run, "train/target_tokens");
  return isnan(target) ? source : target + (isnan(source) ? 0 : source);
}

static double size_of(const tarn_results_run *run, tarn_fit_axis axis) {
  switch (axis) {
    case TARN_FIT_PARAMETERS:
      return run->parameters > 0 ? (double)run->parameters : NAN;
    case TARN_FIT_TRAINED:
      return run->trained_parameters > 0 ? (double)run->trained_parameters : NAN;
    case TARN_FIT_TOKENS:
      return tokens_of(run);
    // A run that saw less than the whole text has learnt from what it saw.
    case TARN_FIT_TEXT:
      return tokens_of(run) / fmax(run->epoch, 1);
    case TARN_FIT_OPERATIONS:
      return run->cost.operations;
    default:
      return NAN;
  }
}

static tarn_status make_point(tarn_fit_point *point, const struct tarn__fit_memory *m, size_t index) {
  const tarn_results_run *run = &m->results->runs[index];
  const tarn_results_series *series = tarn_results_find(run, m->public.metric);
  TARN_REQUIRE(series, DATA, "%s has no %s, which the other runs have; give --metric", run->path, m->public.metric);
  *point = (tarn_fit_point){.run = index, .group = run->group, .loss = series->points[0].value};
  for (size_t i = 1; i < series->count; i++) point->loss = fmin(point->loss, series->points[i].value);
  TARN_REQUIRE(point->loss > 0, DATA, "%s: its %s is %g, and a law has a loss above 0", run->path, series->name,
               point->loss);
  for (size_t k = 0; k < m->public.axis_count; k++) {
    point->x[k] = size_of(run, m->public.axes[k]);
    TARN_REQUIRE(isfinite(point->x[k]) && point->x[k] > 0, DATA, "%s does not say its size in %s", run->path,
                 tarn_fit_axis_name(m->public.axes[k]));
  }
  return TARN_STATUS_OK;
}

// --- families

size_t tarn__fit_least_sizes(size_t axes) { return axes == 1 ? 4 : 6; }

// Under a limit of time runs of one configuration differ in their tokens and operations.
static bool same_place(const tarn_fit_point *a, const tarn_fit_point *b, size_t axes, size_t axis) {
  if (a->group == b->group) return true;
  for (size_t k = 0; k < axes; k++)
    if ((axis == axes || axis == k) && fabs(a->x[k] - b->x[k]) > 0.02 * fmax(a->x[k], b->x[k])) return false;
  return true;
}

size_t tarn__fit_different(const tarn_fit_point *points, size_t count, size_t axes, size_t axis) {
  size_t different = 0;
  for (size_t i = 0; i < count; i++) {
    size_t j = 0;
    while (j < i && !same_place(&points[i], &points[j], axes, axis)) j++;
    different += j == i;
  }
  return different;
}

bool tarn__fit_has_sizes(const tarn_fit_point *points, size_t count, size_t axes) {
  for (size_t k = 0; axes > 1 && k < axes; k++)
    if (tarn__fit_different(points, count, axes, k) < 3) return false;
  return tarn__fit_different(points, count, axes, axes) >= tarn__fit_least_sizes(axes);
}

static tarn_status check_sizes(const struct tarn__fit_memory *m, const tarn__fit_family *family) {
  const size_t axes = m->public.axis_count, least = tarn__fit_least_sizes(axes);
  TARN_REQUIRE(family->sizes >= least, DATA,
               "family %s has %zu finished run%s of %zu different size%s in %s%s%s, and a law needs at least %zu sizes",
               family->name, family->count, family->count == 1 ? "" : "s", family->sizes, family->sizes == 1 ? "" : "s",
               tarn_fit_axis_name(m->public.axes[0]), axes > 1 ? " and " : "",
               axes > 1 ? tarn_fit_axis_name(m->public.axes[1]) : "", least);
  for (size_t k = 0; axes > 1 && k < axes; k++)
    TARN_REQUIRE(tarn__fit_different(family->points, family->count, axes, k) >= 3, DATA,
                 "family %s has fewer than 3 different sizes in %s, which a law with two axes needs", family->name,
                 tarn_fit_axis_name(m->public.axes[k]));
  return TARN_STATUS_OK;
}

static tarn_status fill_family(struct tarn__fit_memory *m, tarn__fit_family *family, const char *pattern) {
  const tarn_results *r = m->results;
  const size_t axes = m->public.axis_count;
  void *points, *numbers;
  size_t found = 0, missing = 0;
  TARN_TRY(tarn__arena_alloc(&m->arena, &points, r->run_count, sizeof *family->points));
  family->points = points;
  for (size_t g = 0; g < r->group_count; g++) {
    if (fnmatch(pattern, r->groups[g].name, 0) != 0) continue;
    found++;
    for (size_t i = 0; i < r->groups[g].run_count; i++) {
      const size_t index = r->groups[g].runs[i];
      if (is_finished(&r->runs[index]))
        TARN_TRY(make_point(&family->points[family->count++], m, index));
      else if (missing++ < NAMED_RUNS)
        TARN_TRY(
            note(m, "%s is %s and not in the fit", r->runs[index].path, tarn_results_state_name(r->runs[index].state)));
    }
  }
  if (missing > NAMED_RUNS)
    TARN_TRY(note(m, "of the runs of %s %zu more are not in the fit", family->name, missing - NAMED_RUNS));
  TARN_REQUIRE(found > 0, USAGE, "family %s: no configuration has a name like \"%s\"; the first is %s", family->name,
               pattern, r->groups[0].name);
  family->sizes = tarn__fit_different(family->points, family->count, axes, axes);
  TARN_TRY(check_sizes(m, family));
  TARN_TRY(tarn__arena_alloc(&m->arena, &numbers, family->count * (axes + 1), sizeof(double)));
  family->log_x = numbers;
  if (family->count < 8)
    TARN_TRY(note(m, "%s has %zu runs, of which intervals are too short", family->name, family->count));
  family->log_loss = family->log_x + family->count * axes;
  for (size_t i = 0; i < family->count; i++) {
    for (size_t k = 0; k < axes; k++) family->log_x[i * axes + k] = log(family->points[i].x[k]);
    family->log_loss[i] = log(family->points[i].loss);
  }
  return TARN_STATUS_OK;
}

// Each configuration is in one family at most.
static tarn_status check_families(struct tarn__fit_memory *m) {
  const tarn_results *r = m->results;
  for (size_t g = 0; g < r->group_count; g++) {
    const tarn_fit_family *first = NULL;
    for (size_t f = 0; f < m->options.family_count; f++) {
      const tarn_fit_family *family = &m->options.families[f];
      if (fnmatch(family->pattern, r->groups[g].name, 0) != 0) continue;
      TARN_REQUIRE(!first, USAGE, "%s is in two families, %s (\"%s\") and %s (\"%s\")", r->groups[g].name, first->name,
                   first->pattern, family->name, family->pattern);
      first = family;
    }
    if (!first) TARN_TRY(note(m, "%s is in no family", r->groups[g].name));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__fit_collect(struct tarn__fit_memory *m) {
  static const tarn_fit_family all = {"all", "*"};
  void *memory;
  TARN_REQUIRE(m->results->group_count > 0, USAGE, "there is no run to fit a law to");
  if (m->options.family_count == 0) m->options.families = &all, m->options.family_count = 1;
  TARN_TRY(find_metric(m));
  TARN_TRY(check_families(m));
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->options.family_count, sizeof *m->families));
  m->families = memory;
  memset(m->families, 0, m->options.family_count * sizeof *m->families);
  for (size_t f = 0; f < m->options.family_count; f++) {
    char *name;
    TARN_TRY(tarn__arena_strdup(&m->arena, &name, m->options.families[f].name));
    m->families[f].name = name;
    TARN_TRY(fill_family(m, &m->families[f], m->options.families[f].pattern));
  }
  return TARN_STATUS_OK;
}

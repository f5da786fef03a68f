// Curves over training time and over updates.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "description/description.h"
#include "report/measures.h"
#include "report/report_figures.h"
#include "report/results_memory.h"
#include "report/table_build.h"
#include "tarn/measure.h"

enum { SAMPLES = 161 };

// A chart under construction.
typedef struct curves {
  tarn__report *view;
  const char *metric;
  tarn_results_axis axis;
  double unit;  // of x
  tarn__chart_line *lines;
  size_t count;
  bool here;  // only runs on the table's processor
  tarn__report_runs runs;
} curves;

static double *numbers(tarn__report *view, size_t count) {
  void *memory = NULL;
  if (view->status == TARN_STATUS_OK) view->status = tarn__arena_alloc(&view->arena, &memory, count, sizeof(double));
  return memory;
}

// Keeps the points reached by most runs: after the end of one of them, the mean of the others would jump.
static size_t keep_common(tarn_results_band_point *points, size_t count) {
  size_t most = 0;
  size_t kept = 0;
  for (size_t k = 0; k < count; k++)
    if (points[k].count > most) most = points[k].count;
  for (size_t k = 0; k < count; k++)
    if (points[k].count == most) points[kept++] = points[k];
  return kept;
}

// If no x of the grid falls on any curve, as with a single validation right after T-hat, the curves' own points are
// used: the mean of the first ones, of the second ones, ..., as far as all runs have them. Points beyond the limit
// count only if the limit ended the run.
static size_t own_points(tarn_results_band_point *points, const curves *c, const tarn_results_group *group,
                         double limit) {
  size_t count = SAMPLES;
  const tarn_results_series *series[TARN_CONFIG_SEEDS];
  size_t runs = 0;
  for (size_t i = 0; i < group->run_count && runs < TARN_CONFIG_SEEDS; i++) {
    const tarn_results_run *run = &c->view->results->runs[group->runs[i]];
    const tarn_results_series *s = run->state == TARN_RESULTS_FINISHED ? tarn_results_find(run, c->metric) : NULL;
    size_t reached = 0;
    if (!s || (c->here && c->view->table->measures[group->runs[i]].elsewhere)) continue;
    while (reached < s->count && (s->points[reached].seconds <= limit || tarn__measures_ends_at(run, limit))) reached++;
    if (reached < count) count = reached;
    series[runs++] = s;
  }
  for (size_t k = 0; runs && k < count; k++) {
    tarn_results_band_point *p = &points[k];
    *p = (tarn_results_band_point){.count = runs};
    for (size_t i = 0; i < runs; i++) {
      p->x += series[i]->points[k].seconds / (double)runs;
      p->mean += series[i]->points[k].value / (double)runs;
    }
    for (size_t i = 0; i < runs && runs > 1; i++)
      p->sd += pow(series[i]->points[k].value - p->mean, 2) / (double)(runs - 1);
    p->sd = sqrt(p->sd);
  }
  return runs ? count : 0;
}

// The mean of a configuration's finished runs with one standard deviation on each side.
static void add_band(curves *c, const tarn__report_entry *entry, double limit) {
  tarn__report *view = c->view;
  tarn_results_band_point points[SAMPLES];
  size_t count = 0;
  double *data = numbers(view, 4 * SAMPLES);
  if (!data) return;
  view->status = tarn_results_band(points, &count, SAMPLES, view->results, (size_t)(entry - view->entries), c->metric,
                                   c->axis, limit);
  if (count == 0 && c->axis == TARN_RESULTS_SECONDS) count = own_points(points, c, entry->group, limit);
  if (view->status != TARN_STATUS_OK || count == 0) return;
  bool spread = false;
  size_t runs = 0;
  count = keep_common(points, count);
  for (size_t k = 0; k < count; k++) {
    if (points[k].count > runs) runs = points[k].count;
    data[k] = points[k].x / c->unit;
    data[SAMPLES + k] = points[k].mean;
    data[2 * SAMPLES + k] = points[k].mean - points[k].sd;
    data[3 * SAMPLES + k] = points[k].mean + points[k].sd;
    spread |= points[k].sd > 0;
  }
  tarn__report_add_runs(&c->runs, runs);
  c->lines[c->count++] = (tarn__chart_line){.label = entry->label,
                                            .x = data,
                                            .y = data + SAMPLES,
                                            .low = spread ? data + 2 * SAMPLES : NULL,
                                            .high = spread ? data + 3 * SAMPLES : NULL,
                                            .count = count};
}

#define FAILED_RUNS "A thin line that ends in a cross is a run that failed."

// A failed run, up to its failure.
static void add_failed(curves *c, const tarn__report_entry *entry, const tarn_results_run *run) {
  const tarn_results_series *series = tarn_results_find(run, c->metric);
  if (!series || series->count < 2) return;
  double *data = numbers(c->view, 2 * series->count);
  if (!data) return;
  for (size_t k = 0; k < series->count; k++) {
    const tarn_results_point *point = &series->points[k];
    data[k] = (c->axis == TARN_RESULTS_SECONDS ? point->seconds : (double)point->step) / c->unit;
    data[series->count + k] = point->value;
  }
  tarn__chart_line *line = &c->lines[c->count++];
  *line = (tarn__chart_line){
      .label = entry->label, .x = data, .y = data + series->count, .count = series->count, .broken = true};
  line->label.name = tarn__report_text(c->view, "%s, seed %lld: failed", entry->group->name, (long long)run->seed);
}

static void collect(curves *c, double limit, bool failed) {
  tarn__report *view = c->view;
  void *memory = NULL;
  if (view->status == TARN_STATUS_OK)
    view->status = tarn__arena_alloc(&view->arena, &memory, view->count + view->results->run_count, sizeof *c->lines);
  c->lines = memory;
  if (!memory) return;
  for (size_t i = 0; i < view->count; i++) {
    if (view->entries[i].row) add_band(c, &view->entries[i], limit);
  }
  for (size_t i = 0; failed && i < view->results->run_count; i++) {
    const tarn_results_run *run = &view->results->runs[i];
    if (run->state != TARN_RESULTS_FAILED || (c->here && view->table->measures[i].elsewhere)) continue;
    add_failed(c, &view->entries[run->group], run);
  }
}

// The visible part of a chart.
typedef struct range {
  double x_low, low, high;  // NAN: determined by the values
} range;

// A zoom on the differences near the end: from the worst value of any model in its second half to the best value. False
// if that is not much smaller than the whole range.
static bool close_range(const curves *c, bool less, range *out) {
  double sign = less ? -1 : 1;  // more is better
  double worst = INFINITY, low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < c->count; i++) {
    const tarn__chart_line *line = &c->lines[i];
    const double *edge = less ? line->low : line->high;
    for (size_t k = 0; k < line->count; k++) {
      worst = fmin(worst, sign * line->y[k]);
      if (k >= line->count / 2) low = fmin(low, sign * line->y[k]);
      high = fmax(high, sign * (edge ? edge[k] : line->y[k]));
    }
  }
  if (!(high > low) || high - low > 0.5 * (high - worst)) return false;
  *out = less ? (range){INFINITY, -high, -low} : (range){INFINITY, low, high};
  for (size_t i = 0; i < c->count; i++) {
    const tarn__chart_line *line = &c->lines[i];
    size_t k = 0;
    while (k < line->count && sign * line->y[k] < low) k++;
    if (k < line->count) out->x_low = fmin(out->x_low, line->x[k]);
  }
  return isfinite(out->x_low);
}

static bool has_negative(const curves *c) {
  for (size_t i = 0; i < c->count; i++) {
    for (size_t k = 0; k < c->lines[i].count; k++) {
      if (c->lines[i].y[k] < 0) return true;
    }
  }
  return false;
}

static const char *unit_of(tarn__report *view, const char *metric) {
  if (strcmp(metric, "dynamics/exponent") == 0) return "exponent";
  const tarn_measure *measure = tarn_measure_find(metric);
  return measure ? measure->axis : tarn__report_score(view, metric);
}

static void draw(tarn__figures *figures, curves *c, const char *name, const char *title, const char *caption,
                 const char *x_label, const range *shown) {
  tarn__report *view = c->view;
  tarn__figure *figure = tarn__figure_add(figures, view, TARN__FIGURE_CURVES, name, title, caption);
  if (!figure) return;
  tarn__chart chart = {.head = {.id = figure->name, .title = figure->title, .description = figure->caption},
                       .x_label = x_label,
                       .y_label = unit_of(view, c->metric)};
  tarn__chart_lines(&figure->page, &chart, c->lines, c->count, shown->x_low, shown->low, shown->high);
  chart.head.standalone = true;
  chart.foot = view->origin;
  tarn__chart_lines(&figure->file, &chart, c->lines, c->count, shown->x_low, shown->low, shown->high);
}

// The chart of a score over time or over updates, and a zoom on its upper (for losses, lower) part.
static void draw_score(tarn__figures *figures, tarn__report *view, const char *metric, tarn_results_axis axis) {
  bool time = axis == TARN_RESULTS_SECONDS;
  bool less = false;
  int64_t most = 0;
  for (size_t i = 0; i < view->results->run_count; i++) {
    const tarn_results_series *series = tarn_results_find(&view->results->runs[i], metric);
    if (series) less = series->less;
    if (view->results->runs[i].step > most) most = view->results->runs[i].step;
  }
  curves c = {view, metric, axis, time ? view->unit : most >= 10000 ? 1000 : 1, NULL, 0, time, {0}};
  const char *x_label = time         ? tarn__report_text(view, "training time (%s)", view->unit_name)
                        : c.unit > 1 ? "updates (thousands)"
                                     : "updates";
  const char *score = tarn__report_score(view, metric);
  const char *word = strrchr(metric, '/') ? strrchr(metric, '/') + 1 : metric;
  const char *name = tarn__report_text(view, "%s-%s", word, time ? "time" : "updates");
  const char *over = time ? "training time" : "updates";
  const char *of = time ? tarn__report_processor(view, "They are") : "";
  double limit = time ? view->table->budget : 0;
  collect(&c, limit, true);
  if (c.count == 0) return;
  range whole = {0, less || has_negative(&c) ? NAN : 0, NAN};
  draw(figures, &c, name, tarn__report_text(view, "%c%s over %s", score[0] & ~0x20, score + 1, over),
       tarn__report_text(view, "%c%s of each model over %s, mean over seeds.%s %s " FAILED_RUNS, score[0] & ~0x20,
                         score + 1, over, of, tarn__report_bars(view, "The band", &c.runs)),
       x_label, &whole);
  c.count = 0;
  c.runs = (tarn__report_runs){0};
  collect(&c, limit, false);
  range close = {0};
  if (view->status != TARN_STATUS_OK || !close_range(&c, less, &close)) return;
  draw(figures, &c, tarn__report_text(view, "%s-close", name),
       tarn__report_text(view, "%c%s over %s, a closer look", score[0] & ~0x20, score + 1, over),
       tarn__report_text(
           view,
           "The part of the chart of %s over %s in which the models differ near their ends.%s %s The axes do "
           "not begin at 0.",
           score, over, of, tarn__report_bars(view, "The band", &c.runs)),
       x_label, &close);
}

// Of models as dynamical systems, whose sign is what matters: 0 is in the picture.
static void draw_exponents(tarn__figures *figures, tarn__report *view) {
  curves c = {view, "dynamics/exponent", TARN_RESULTS_STEPS, 1, NULL, 0, false, {0}};
  range shown = {0, 0, 0};
  collect(&c, 0, true);
  for (size_t i = 0; i < c.count; i++)
    for (size_t k = 0; k < c.lines[i].count; k++) {
      const tarn__chart_line *line = &c.lines[i];
      if ((line->low ? fmin(line->low[k], line->y[k]) : line->y[k]) < 0) shown.low = NAN;
      if ((line->high ? fmax(line->high[k], line->y[k]) : line->y[k]) > 0) shown.high = NAN;
    }
  if (c.count == 0) return;
  if (shown.low >= 0 && shown.high >= 0) shown.high = NAN;
  draw(figures, &c, "exponent-updates", "Largest Lyapunov exponent over updates",
       tarn__report_text(
           view,
           "Largest Lyapunov exponent of each model as a dynamical system, per iteration, median over "
           "sentences and mean over seeds: above 0 small perturbations grow, below 0 they vanish. %s " FAILED_RUNS,
           tarn__report_bars(view, "The band", &c.runs)),
       "updates", &shown);
}

void tarn__report_curves(tarn__figures *figures, tarn__report *view) {
  draw_score(figures, view, view->table->metric, TARN_RESULTS_SECONDS);
  draw_score(figures, view, view->table->metric, TARN_RESULTS_STEPS);
  if (strcmp(view->table->metric, "valid/loss") != 0) draw_score(figures, view, "valid/loss", TARN_RESULTS_SECONDS);
  draw_exponents(figures, view);
}

// --- backskipping

static const char prefix[] = "backskip/cosine/";

static bool has_cosines(const tarn_results_run *run) {
  for (size_t s = 0; s < run->series_count; s++)
    if (run->state == TARN_RESULTS_FINISHED && strncmp(run->series[s].name, prefix, strlen(prefix)) == 0) return true;
  return false;
}

static void draw_cosines(tarn__figures *figures, tarn__report *view, const tarn__report_entry *entry) {
  const tarn_results_run *first = tarn__report_first(view, entry->group, has_cosines);
  void *memory = NULL;
  if (!first) return;
  if (view->status == TARN_STATUS_OK)
    view->status = tarn__arena_alloc(&view->arena, &memory, first->series_count, sizeof(tarn__chart_line));
  if (!memory) return;
  curves c = {view, NULL, TARN_RESULTS_STEPS, 1, memory, 0, false, {0}};
  for (size_t s = 0; s < first->series_count; s++) {
    if (strncmp(first->series[s].name, prefix, strlen(prefix)) != 0) continue;
    size_t before = c.count;
    c.metric = first->series[s].name;
    add_band(&c, entry, 0);
    if (c.count == before) continue;
    c.lines[before].label = (tarn__chart_label){
        .name = tarn__report_text(view, "%s", c.metric + strlen(prefix)), .note = "frozen", .style = (int)before};
  }
  if (c.count == 0) return;
  tarn__figure *figure = tarn__figure_add(
      figures, view, TARN__FIGURE_BACKSKIP, tarn__report_text(view, "backskip-%s", entry->group->name),
      tarn__report_text(view, "%s: cosine to the true gradient", entry->group->name),
      tarn__report_text(view,
                        "Cosine similarity of the approximated gradient below each frozen layer of %s (%s) "
                        "to the true one, at each refresh: 1 is exact, 0 no better than chance. %s",
                        entry->group->name, entry->label.note, tarn__report_bars(view, "The band", &c.runs)));
  if (!figure) return;
  tarn__chart chart = {.head = {.id = figure->name, .title = figure->title, .description = figure->caption},
                       .x_label = "updates",
                       .y_label = "cosine similarity"};
  double low = 0;
  for (size_t i = 0; i < c.count; i++) {
    for (size_t k = 0; k < c.lines[i].count; k++) low = fmin(low, c.lines[i].y[k]);
  }
  tarn__chart_lines(&figure->page, &chart, c.lines, c.count, 0, low < 0 ? -1 : 0, 1);
  chart.head.standalone = true;
  chart.foot = view->origin;
  tarn__chart_lines(&figure->file, &chart, c.lines, c.count, 0, low < 0 ? -1 : 0, 1);
}

void tarn__report_backskip(tarn__figures *figures, tarn__report *view) {
  for (size_t i = 0; i < view->count; i++) {
    if (view->entries[i].row) draw_cosines(figures, view, &view->entries[i]);
  }
}

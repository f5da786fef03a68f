#include "report/report_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/markup.h"
#include "report/svg_layers.h"

static bool name_taken(const tarn__figures *figures, const char *name) {
  for (size_t i = 0; i < figures->count; i++) {
    if (strcasecmp(figures->items[i].name, name) == 0) return true;
  }
  return false;
}

tarn__figure *tarn__figure_add(tarn__figures *figures, tarn__report *view, tarn__figure_part part, const char *name,
                               const char *title, const char *caption) {
  tarn__buffer plain = {0};
  tarn__markup_file_name(&plain, name);
  if (view->status == TARN_STATUS_OK) view->status = plain.status;
  const char *own = tarn__report_text(view, "%s", plain.data ? plain.data : "figure");
  for (int i = 2; view->status == TARN_STATUS_OK && name_taken(figures, own); i++)
    own = tarn__report_text(view, "%s-%d", plain.data ? plain.data : "figure", i);
  tarn__buffer_close(&plain);
  if (view->status == TARN_STATUS_OK)
    view->status = tarn__grow(&figures->items, &figures->capacity, figures->count + 1, sizeof *figures->items);
  if (view->status != TARN_STATUS_OK) return NULL;
  tarn__figure *figure = &figures->items[figures->count++];
  *figure = (tarn__figure){.part = part, .name = own, .title = title, .caption = caption};
  return figure;
}

tarn_status tarn__figures_status(const tarn__figures *figures, const tarn__report *view) {
  TARN_TRY(view->status);
  for (size_t i = 0; i < figures->count; i++) {
    TARN_TRY(figures->items[i].page.status);
    TARN_TRY(figures->items[i].file.status);
  }
  return TARN_STATUS_OK;
}

// --- the models

static void draw_models(tarn__figures *figures, tarn__report *view) {
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    const tarn_results_group *group = entry->group;
    if (!entry->label.encoder || !entry->label.decoder) continue;
    const tarn_results_stack *low = &group->encoder, *high = &group->decoder;
    const char *encoder = low->count ? tarn__report_text(view, "Encoder %s, ", low->pattern) : "";
    const char *decoder = high->count ? tarn__report_text(view, "decoder %s: ", high->pattern) : "";
    const char *caption = tarn__report_text(view, "%s%s%s.", encoder, decoder, entry->label.note);
    tarn__figure *figure = tarn__figure_add(figures, view, TARN__FIGURE_MODELS,
                                            tarn__report_text(view, "model-%s", group->name), group->name, caption);
    if (!figure) return;
    tarn__svg_head head = {.id = figure->name, .title = figure->title, .description = figure->caption};
    tarn__svg_layers(&figure->page, head, NULL, &group->encoder, &group->decoder);
    head.standalone = true;
    tarn__svg_layers(&figure->file, head, view->origin, &group->encoder, &group->decoder);
  }
}

// --- area under the curve

static tarn_status draw_aucc(tarn__figures *figures, tarn__report *view) {
  void *memory = NULL;
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, view->count, sizeof(tarn__chart_bar)));
  tarn__chart_bar *bars = memory;
  tarn__report_runs runs = {0};
  size_t count = 0;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    if (!entry->row || isnan(entry->row->aucc_mean.mean)) continue;
    bars[count++] = (tarn__chart_bar){.label = entry->label,
                                      .value = entry->row->aucc_mean.mean,
                                      .error = entry->row->aucc_mean.sd,
                                      .text = tarn__report_spread(view, &entry->row->aucc_mean, 1, view->decimals)};
    tarn__report_add_runs(&runs, entry->row->aucc_mean.count);
  }
  tarn__figure *figure = tarn__figure_add(
      figures, view, TARN__FIGURE_SUMS, "aucc", "Area under the convergence curve",
      tarn__report_text(view,
                        "AUCC of %s up to %s, divided by that time: longer%s is better.%s %s The dashed line is the "
                        "baseline.",
                        view->score, view->budget, view->table->less ? " to the right" : "",
                        tarn__report_processor(view, "It is"),
                        tarn__report_bars(view, "The black line on a bar", &runs)));
  if (!figure) return view->status;
  tarn__chart chart = {
      .head = {.id = figure->name, .title = figure->title, .description = figure->caption},
      .x_label = tarn__report_text(view, "AUCC / time: %smean %s over %s", view->table->less ? "negative of the " : "",
                                   view->score, view->budget)};
  tarn__chart_bars(&figure->page, &chart, bars, count);
  chart.head.standalone = true;
  chart.foot = view->origin;
  tarn__chart_bars(&figure->file, &chart, bars, count);
  return view->status;
}

// --- parameters and layers against scores

static const tarn_results_statistic *score_of(const tarn__report *view, const tarn_results_row *row) {
  return view->has_test ? tarn__report_test(view, row) : &row->best;
}

static const tarn_results_statistic *area_of(const tarn__report *view, const tarn_results_row *row) {
  (void)view;
  return &row->aucc_mean;
}

// The size of a model: its trained part, and the total. False: unknown.
typedef bool size_of(const tarn__report *view, const tarn_results_group *group, double *trained, double *all);

static bool parameters_of(const tarn__report *view, const tarn_results_group *group, double *trained, double *all) {
  const tarn_results_run *run = tarn__report_first(view, group, tarn__report_has_sizes);
  if (!run) return false;
  *trained = (double)run->trained_parameters;
  *all = (double)run->parameters;
  return true;
}

// Updates per second of training, a mean over the finished runs on the table's processor.
static bool speed_of(const tarn__report *view, const tarn_results_group *group, double *trained, double *all) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < group->run_count; i++) {
    const tarn_results_run *run = &view->results->runs[group->runs[i]];
    if (run->state != TARN_RESULTS_FINISHED || !(run->seconds > 0) || run->step <= 0) continue;
    if (view->table->measures[group->runs[i]].elsewhere) continue;
    sum += (double)run->step / run->seconds;
    count++;
  }
  *trained = *all = count ? sum / (double)count : NAN;
  return count > 0;
}

static bool layers_of(const tarn__report *view, const tarn_results_group *group, double *trained, double *all) {
  (void)view;
  *trained = group->encoder.trained + group->decoder.trained;
  *all = group->encoder.count + group->decoder.count;
  return *all > 0;
}

// A figure with one point per model, a measure over a size.
typedef struct points_figure {
  const char *name, *title, *of, *x_label, *y_label;  // of: "parameters"
  size_of *size;
  const tarn_results_statistic *(*measure)(const tarn__report *view, const tarn_results_row *row);
  double unit;
  bool differing;     // omitted if all models have the same size
  bool parts;         // a size has a trained part and a whole
  const char *timed;  // "Areas are": what is of the runs on one processor; NULL: nothing
} points_figure;

static tarn_status draw_points(tarn__figures *figures, tarn__report *view, const points_figure *spec) {
  void *memory = NULL;
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, view->count, sizeof(tarn__chart_point)));
  tarn__chart_point *points = memory;
  tarn__report_runs runs = {0};
  size_t count = 0;
  bool differ = false;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    double trained, all;
    if (!entry->row || !spec->size(view, entry->group, &trained, &all)) continue;
    const tarn_results_statistic *value = spec->measure(view, entry->row);
    if (value->count == 0 || isnan(value->mean)) continue;
    points[count] = (tarn__chart_point){.label = entry->label,
                                        .x = trained / spec->unit,
                                        .y = value->mean,
                                        .error = value->sd,
                                        .x_also = all / spec->unit};
    tarn__report_add_runs(&runs, value->count);
    differ = differ || points[count].x != points[0].x || points[count].x_also != points[0].x_also;
    count++;
  }
  if (count == 0 || (spec->differing && !differ)) return view->status;
  const char *marks = spec->parts ? ": the filled mark stands at those that are trained, the hollow one at all, the "
                                    "frozen ones included"
                                  : "; labels say which layers are frozen";
  tarn__figure *figure =
      tarn__figure_add(figures, view, TARN__FIGURE_SUMS, spec->name, spec->title,
                       tarn__report_text(view, "Each model's %s over its %s%s.%s %s", spec->y_label, spec->of, marks,
                                         spec->timed ? tarn__report_processor(view, spec->timed) : "",
                                         tarn__report_bars(view, "The upright line through a mark", &runs)));
  if (!figure) return view->status;
  tarn__chart chart = {
      .head = {.id = figure->name, .title = figure->title, .description = figure->caption},
      .x_label = spec->parts ? tarn__report_text(view, "%s: trained \xE2\x97\x8F, all \xE2\x97\x8B", spec->x_label)
                             : spec->x_label,
      .y_label = spec->y_label};
  tarn__chart_points(&figure->page, &chart, points, count);
  chart.head.standalone = true;
  chart.foot = view->origin;
  tarn__chart_points(&figure->file, &chart, points, count);
  return view->status;
}

// A unit in which all counts have few digits.
static double parameter_unit(const tarn__report *view) {
  int64_t most = 0;
  for (size_t i = 0; i < view->results->run_count; i++) {
    if (view->results->runs[i].parameters > most) most = view->results->runs[i].parameters;
  }
  return most >= 1000000 ? 1e6 : most >= 10000 ? 1e3 : 1;
}

// Scores over parameters and, as in the papers on reservoirs, scores and areas over updatable and all layers.
static tarn_status draw_sizes(tarn__figures *figures, tarn__report *view) {
  const char *score = view->has_test ? view->test : tarn__report_text(view, "best %s", view->score);
  const char *area =
      tarn__report_text(view, "AUCC / time: %smean %s", view->table->less ? "negative of the " : "", view->score);
  const double unit = parameter_unit(view);
  const char *counted = unit == 1e6 ? " (millions)" : unit == 1e3 ? " (thousands)" : "";
  const points_figure all[] = {
      {"parameters", "Parameters against score", "parameters", tarn__report_text(view, "parameters%s", counted), score,
       parameters_of, score_of, unit, false, true, NULL},
      {"layers", "Layers against score", "layers", "layers", score, layers_of, score_of, 1, true, true, NULL},
      {"layers-aucc", "Layers against the area under the curve", "layers", "layers", area, layers_of, area_of, 1, true,
       true, "Areas are"},
      {"speed", "Speed against score", "speed", "updates per second of training", score, speed_of, score_of, 1, true,
       false, "Speeds are"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) TARN_TRY(draw_points(figures, view, &all[i]));
  return view->status;
}

tarn_status tarn__report_figures(tarn__figures *figures, tarn__report *view) {
  draw_models(figures, view);
  tarn__report_curves(figures, view);
  TARN_TRY(view->status);
  TARN_TRY(draw_aucc(figures, view));
  TARN_TRY(draw_sizes(figures, view));
  tarn__report_backskip(figures, view);
  return tarn__figures_status(figures, view);
}

void tarn__report_figures_close(tarn__figures *figures) {
  for (size_t i = 0; i < figures->count; i++) {
    tarn__buffer_close(&figures->items[i].page);
    tarn__buffer_close(&figures->items[i].file);
  }
  tarn__free(figures->items);
  *figures = (tarn__figures){0};
}

// The figure of a fit.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "report/fit_memory.h"
#include "report/svg_chart.h"

enum { SAMPLES = 81, MOST_LINES = 24 };

typedef struct picture {
  struct tarn__fit_memory *memory;
  tarn__arena arena;
  tarn__chart_line lines[MOST_LINES];
  size_t count, left_out;
  double low, high;  // of x
} picture;

static tarn_status text_of(const char **out, tarn__arena *arena, const char *family, const char *axis, double value) {
  char text[256], *copy;
  if (axis)
    snprintf(text, sizeof text, "%s, %.3g %s", family, value, axis);
  else
    snprintf(text, sizeof text, "%s", family);
  TARN_TRY(tarn__arena_strdup(arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}

// The edges of the interval at each x of a line.
static void add_edges(struct tarn__fit_memory *m, const tarn__fit_family *family, const double *log_x, double *low,
                      double *high) {
  for (int64_t r = 0; r < m->public.resamples; r++) m->values[r] = exp(tarn__law_at(&family->resampled[r], log_x));
  const tarn_fit_value value = tarn__fit_interval(m, NAN);
  *low = value.low, *high = value.high;
}

// A family's law over the first axis, the second one (if any) being that of point `at`, and the runs of that size.
static tarn_status add_line(picture *p, size_t f, const tarn_fit_point *at) {
  struct tarn__fit_memory *m = p->memory;
  const tarn__fit_family *family = &m->families[f];
  const bool two = m->public.axis_count > 1;
  void *memory;
  if (p->count == MOST_LINES) {
    p->left_out++;
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__arena_alloc(&p->arena, &memory, 4 * SAMPLES + 2 * family->count, sizeof(double)));
  double *x = memory, *y = x + SAMPLES, *low = y + SAMPLES, *high = low + SAMPLES, *point_x = high + SAMPLES,
         *point_y = point_x + family->count;
  size_t points = 0;
  for (size_t i = 0; i < SAMPLES; i++) {
    const double log_x[] = {log(p->low) + (double)i / (SAMPLES - 1) * log(p->high / p->low), two ? log(at->x[1]) : 0};
    x[i] = exp(log_x[0]);
    y[i] = exp(tarn__law_at(&family->law, log_x));
    if (m->public.resamples > 0) add_edges(m, family, log_x, &low[i], &high[i]);
  }
  for (size_t i = 0; i < family->count; i++) {
    const tarn_fit_point *point = &family->points[i];
    if (two && fabs(point->x[1] - at->x[1]) > 0.02 * at->x[1]) continue;
    point_x[points] = point->x[0], point_y[points++] = point->loss;
  }
  const bool band = m->public.resamples > 0;
  tarn__chart_line *line = &p->lines[p->count];
  *line = (tarn__chart_line){.label = {.style = (int)p->count},
                             .x = x,
                             .y = y,
                             .low = band ? low : NULL,
                             .high = band ? high : NULL,
                             .count = SAMPLES,
                             .point_x = point_x,
                             .point_y = point_y,
                             .points = points};
  p->count++;
  return text_of(&line->label.name, &p->arena, family->name, two ? tarn_fit_axis_name(m->public.axes[1]) : NULL,
                 two ? at->x[1] : 0);
}

static tarn_status add_lines(picture *p) {
  const struct tarn__fit_memory *m = p->memory;
  for (size_t f = 0; f < m->public.law_count; f++) {
    const tarn__fit_family *family = &m->families[f];
    for (size_t i = 0; i < family->count; i++)  // the first run of each size of the second axis, or the first of all
      if (i == 0 || (m->public.axis_count > 1 &&
                     tarn__fit_different(family->points, i + 1, 2, 1) > tarn__fit_different(family->points, i, 2, 1)))
        TARN_TRY(add_line(p, f, &family->points[i]));
  }
  return TARN_STATUS_OK;
}

static void find_ends(picture *p) {
  const tarn_fit *fit = &p->memory->public;
  p->low = INFINITY;
  for (size_t f = 0; f < fit->law_count; f++) {
    for (size_t i = 0; i < fit->laws[f].point_count; i++) {
      p->low = fmin(p->low, fit->laws[f].points[i].x[0]);
      p->high = fmax(p->high, fit->laws[f].points[i].x[0]);
    }
    for (size_t i = 0; i < fit->prediction_count; i++) p->high = fmax(p->high, fit->laws[f].predictions[i].x[0]);
  }
  p->low /= 1.1;
}

static tarn_status draw(picture *p, tarn__buffer *out) {
  const tarn_fit *fit = &p->memory->public;
  char foot[256];
  find_ends(p);
  TARN_TRY(add_lines(p));
  size_t used =
      (size_t)snprintf(foot, sizeof foot, "%sBoth scales are logarithmic.",
                       fit->resamples > 0 ? "Bands: 95 % intervals of the laws, by a bootstrap of residuals. " : "");
  if (p->left_out > 0) snprintf(foot + used, sizeof foot - used, " %zu more lines are left out.", p->left_out);
  const tarn__chart chart = {
      .head = {.id = "fit",
               .title = "Loss by size",
               .description = "Runs as points, and the law of each family with its 95 % interval; both scales are "
                              "logarithmic.",
               .standalone = true},
      .x_label = tarn_fit_axis_name(fit->axes[0]),
      .y_label = fit->metric,
      .foot = foot,
      .logarithmic = true};
  tarn__chart_lines(out, &chart, p->lines, p->count, p->low, NAN, NAN);
  return out->status;
}

tarn_status tarn_fit_write_svg(const tarn_fit *fit, const char *path) {
  picture p = {.memory = fit->memory};
  tarn__buffer out = {0};
  tarn_status status = draw(&p, &out);
  if (status == TARN_STATUS_OK) status = tarn__file_write(path, out.data, out.used);
  tarn__buffer_close(&out);
  tarn__arena_close(&p.arena);
  return status;
}

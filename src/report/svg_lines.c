// Curves with bands, labelled at their right ends.
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "report/svg_axis.h"
#include "report/svg_chart.h"

enum { MARKERS = 7 };

static void widen(double range[2], double value) {
  if (!isfinite(value)) return;
  range[0] = fmin(range[0], value);
  range[1] = fmax(range[1], value);
}

// Values of failed runs may be unbounded, so they do not extend the y axis unless there are no others.
static void ranges(const tarn__chart_line *lines, size_t count, double x[2], double y[2]) {
  bool whole = false;
  for (size_t i = 0; i < count; i++) whole |= !lines[i].broken;
  for (size_t i = 0; i < count; i++) {
    if (lines[i].broken && whole) continue;
    for (size_t k = 0; k < lines[i].count; k++) {
      widen(x, lines[i].x[k]);
      widen(y, lines[i].y[k]);
      if (lines[i].low) widen(y, lines[i].low[k]);
      if (lines[i].high) widen(y, lines[i].high[k]);
    }
    for (size_t k = 0; k < lines[i].points; k++) widen(x, lines[i].point_x[k]), widen(y, lines[i].point_y[k]);
  }
}

static void band(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line) {
  tarn__buffer_format(out, "<polygon class=\"%s\" fill=\"currentColor\" fill-opacity=\"0.15\" points=\"",
                      tarn__svg_colour(line->label.style));
  for (size_t k = 0; k < line->count; k++)
    tarn__buffer_format(out, "%.1f,%.1f ", tarn__svg_axis_at(&plot->x, line->x[k]),
                        tarn__svg_axis_at(&plot->y, line->high[k]));
  for (size_t k = line->count; k-- > 0;)
    tarn__buffer_format(out, "%.1f,%.1f ", tarn__svg_axis_at(&plot->x, line->x[k]),
                        tarn__svg_axis_at(&plot->y, line->low[k]));
  tarn__buffer_add(out, "\"/>\n");
}

static void curve(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line) {
  const char *dash = tarn__svg_dash(line->label.style);
  tarn__buffer_format(out,
                      "<polyline class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"%g\" "
                      "stroke-linejoin=\"round\"",
                      tarn__svg_colour(line->label.style), line->broken ? 1.2 : 2.2);
  if (dash) tarn__buffer_format(out, " stroke-dasharray=\"%s\"", dash);
  tarn__buffer_add(out, " points=\"");
  for (size_t k = 0; k < line->count; k++)
    tarn__buffer_format(out, "%s%.1f,%.1f", k ? " " : "", tarn__svg_axis_at(&plot->x, line->x[k]),
                        tarn__svg_axis_at(&plot->y, line->y[k]));
  tarn__buffer_add(out, "\"/>\n");
}

// Markers at equal distances, staggered over the lines, so that markers of nearby lines do not hide each other.
static void markers(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line, size_t index,
                    size_t count) {
  double pitch = (plot->right - plot->left) / MARKERS;
  double next = plot->left + pitch * (0.35 + 0.65 * (double)index / (double)count);
  if (line->count == 1)  // a single point is visible only by its marker
    tarn__svg_marker(out, line->label.style, tarn__svg_axis_at(&plot->x, line->x[0]),
                     tarn__svg_axis_at(&plot->y, line->y[0]), 4.5);
  for (size_t k = 1; k < line->count && next < plot->right; k++) {
    double x1 = tarn__svg_axis_at(&plot->x, line->x[k]);
    if (x1 < next) continue;
    double x0 = tarn__svg_axis_at(&plot->x, line->x[k - 1]);
    double part = x1 > x0 ? (next - x0) / (x1 - x0) : 0;
    part = fmin(fmax(part, 0), 1);
    double y = tarn__svg_axis_at(&plot->y, line->y[k - 1] + part * (line->y[k] - line->y[k - 1]));
    if (y >= plot->top && y <= plot->bottom) tarn__svg_marker(out, line->label.style, x0 + part * (x1 - x0), y, 4.5);
    next += pitch;
    k--;  // a long segment may have several
  }
}

// Where the measurements are.
static void points(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line) {
  for (size_t k = 0; k < line->points; k++)
    tarn__svg_marker(out, line->label.style, tarn__svg_axis_at(&plot->x, line->point_x[k]),
                     tarn__svg_axis_at(&plot->y, line->point_y[k]), 4.5);
}

// On a patch of background, for visibility among other lines.
static void cross(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line) {
  double x = tarn__svg_axis_at(&plot->x, line->x[line->count - 1]);
  double y = tarn__svg_axis_at(&plot->y, line->y[line->count - 1]);
  for (int pass = 0; pass < 2; pass++) {
    const char *colour = pass ? tarn__svg_colour(line->label.style) : "paper";
    double arm = pass ? 7 : 8.5;
    double width = pass ? 3 : 7;
    tarn__svg_line(out, x - arm, y - arm, x + arm, y + arm, colour, width, NULL);
    tarn__svg_line(out, x - arm, y + arm, x + arm, y - arm, colour, width, NULL);
  }
}

// The labels form a column, in the order of the lines' ends, and a thin line leads to each.
static tarn_status labels(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *lines, size_t count,
                          double width) {
  void *memory = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__chart_end)));
  tarn__chart_end *ends = memory;
  size_t shown = 0;
  for (size_t i = 0; i < count; i++) {
    if (lines[i].count == 0) continue;
    const size_t last = lines[i].count - 1;
    const double y = tarn__svg_axis_at(&plot->y, lines[i].y[last]);
    ends[shown++] = (tarn__chart_end){&lines[i].label, tarn__svg_axis_at(&plot->x, lines[i].x[last]),
                                      fmin(fmax(y, plot->top), plot->bottom)};
  }
  tarn_status status = tarn__chart_column(out, ends, shown, plot->right, width, plot->top - TARN__CHART_ABOVE,
                                          plot->bottom + TARN__SVG_PLOT_FOOT - 8);
  tarn__free(memory);
  return status;
}

static void make_axes(tarn__svg_plot *plot, const tarn__chart *chart, const double x[2], const double y[2]) {
  plot->x = chart->logarithmic ? tarn__svg_axis_make_log(x[0], x[1], 7) : tarn__svg_axis_make(x[0], x[1], 7, false);
  plot->y = chart->logarithmic ? tarn__svg_axis_make_log(y[0], y[1], 8) : tarn__svg_axis_make(y[0], y[1], 8, true);
}

void tarn__chart_lines(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count,
                       double x_low, double y_low, double y_high) {
  double x[2] = {INFINITY, -INFINITY};
  double y[2] = {INFINITY, -INFINITY};
  double width = 40, labelled = 0;
  ranges(lines, count, x, y);
  for (size_t i = 0; i < count; i++) width = fmax(width, tarn__chart_label_width(&lines[i].label));
  for (size_t i = 0; i < count; i++) labelled += tarn__chart_label_height(width, &lines[i].label);
  const double top = tarn__svg_title_height(chart->head.title) + TARN__SVG_PLOT_HEAD;
  const double height = fmax(330, labelled - TARN__CHART_ABOVE - TARN__SVG_PLOT_FOOT + 8);
  tarn__svg_plot plot = {.left = TARN__SVG_PLOT_LEFT,
                         .right = TARN__SVG_WIDTH - width - TARN__CHART_LEADER - 8,
                         .top = top,
                         .bottom = top + height,
                         .x_label = chart->x_label,
                         .y_label = chart->y_label,
                         .title = chart->head.title};
  make_axes(&plot, chart, (const double[]){x_low, x[1]},
            (const double[]){isnan(y_low) ? y[0] : y_low, isnan(y_high) ? y[1] : y_high});
  tarn__svg_head head = chart->head;
  head.width = TARN__SVG_WIDTH;
  head.height = plot.bottom + TARN__SVG_PLOT_FOOT + tarn__svg_foot_height(chart->foot, head.width);
  tarn__svg_open(out, &head);
  tarn__svg_plot_frame(out, &plot);
  tarn__buffer_format(
      out, "<clipPath id=\"%s-area\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n",
      head.id, plot.left, plot.top, plot.right - plot.left + 8, plot.bottom - plot.top);
  tarn__buffer_format(out, "<g clip-path=\"url(#%s-area)\">\n", head.id);
  for (size_t i = 0; i < count; i++) {
    if (lines[i].low && lines[i].high && lines[i].count > 0) band(out, &plot, &lines[i]);
  }
  for (size_t i = 0; i < count; i++) {
    if (lines[i].count > 0) curve(out, &plot, &lines[i]);
  }
  for (size_t i = 0; i < count; i++) {
    if (lines[i].point_x)
      points(out, &plot, &lines[i]);
    else if (!lines[i].broken)
      markers(out, &plot, &lines[i], i, count);
  }
  for (size_t i = 0; i < count; i++) {
    if (lines[i].broken && lines[i].count > 0) cross(out, &plot, &lines[i]);
  }
  tarn__buffer_add(out, "</g>\n");
  const tarn_status status = out->status == TARN_STATUS_OK ? labels(out, &plot, lines, count, width) : out->status;
  if (out->status == TARN_STATUS_OK) out->status = status;  // rather than the buffer's own later failure
  tarn__svg_foot(out, plot.bottom + TARN__SVG_PLOT_FOOT, head.width, chart->foot);
  tarn__svg_close(out);
}

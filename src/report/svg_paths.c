// Paths in a plane: trajectories from a hollow start to a filled end.
#include <math.h>

#include "report/svg_axis.h"
#include "report/svg_chart.h"

enum { SIDE = 480 };

static void widen(double range[2], const double *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    range[0] = fmin(range[0], values[i]);
    range[1] = fmax(range[1], values[i]);
  }
}

static void path(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_line *line) {
  const char *colour = tarn__svg_colour(line->label.style);
  tarn__buffer_format(out,
                      "<polyline class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.2\" "
                      "stroke-opacity=\"0.75\" stroke-linejoin=\"round\" points=\"",
                      colour);
  for (size_t k = 0; k < line->count; k++)
    tarn__buffer_format(out, "%s%.1f,%.1f", k ? " " : "", tarn__svg_axis_at(&plot->x, line->x[k]),
                        tarn__svg_axis_at(&plot->y, line->y[k]));
  tarn__buffer_format(out,
                      "\"/>\n<circle class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\" "
                      "cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n",
                      colour, tarn__svg_axis_at(&plot->x, line->x[0]), tarn__svg_axis_at(&plot->y, line->y[0]));
}

void tarn__chart_paths(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count) {
  double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};
  for (size_t i = 0; i < count; i++) {
    widen(x, lines[i].x, lines[i].count);
    widen(y, lines[i].y, lines[i].count);
  }
  const double top = tarn__svg_title_height(chart->head.title) + TARN__SVG_PLOT_HEAD;
  tarn__svg_plot plot = {.left = TARN__SVG_PLOT_LEFT,
                         .right = TARN__SVG_WIDTH - 28,
                         .top = top,
                         .bottom = top + SIDE,
                         .x = tarn__svg_axis_make(x[0], x[1], 8, true),
                         .y = tarn__svg_axis_make(y[0], y[1], 8, true),
                         .x_label = chart->x_label,
                         .y_label = chart->y_label,
                         .title = chart->head.title};
  tarn__svg_head head = chart->head;
  head.width = TARN__SVG_WIDTH;
  head.height = plot.bottom + TARN__SVG_PLOT_FOOT + tarn__svg_foot_height(chart->foot, head.width);
  tarn__svg_open(out, &head);
  tarn__svg_plot_frame(out, &plot);
  for (size_t i = 0; i < count; i++)
    if (lines[i].count > 0) path(out, &plot, &lines[i]);
  // Ends are drawn on top of all lines.
  for (size_t i = 0; i < count; i++) {
    const size_t last = lines[i].count - 1;
    if (lines[i].count > 0)
      tarn__svg_marker(out, lines[i].label.style, tarn__svg_axis_at(&plot.x, lines[i].x[last]),
                       tarn__svg_axis_at(&plot.y, lines[i].y[last]), 4.5);
  }
  tarn__svg_foot(out, plot.bottom + TARN__SVG_PLOT_FOOT, head.width, chart->foot);
  tarn__svg_close(out);
}

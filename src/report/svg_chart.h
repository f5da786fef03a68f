// Charts: curves with bands, bars, and points. Every series is labelled where it is, with a note that says which of its
// layers are frozen; colours are accompanied by dashes and markers.
#ifndef TARN_REPORT_SVG_CHART_H
#define TARN_REPORT_SVG_CHART_H

#include "report/svg.h"
#include "tarn/lab/results.h"

// Of a series. `note` may be NULL, and so may the stacks, which are drawn as a row of small boxes.
typedef struct tarn__chart_label {
  const char *name, *note;
  const tarn_results_stack *encoder, *decoder;
  int style;  // see tarn__svg_colour(); 0 is the baseline
} tarn__chart_label;

// What all charts have. `head.title` is drawn; width and height are set by the chart.
typedef struct tarn__chart {
  tarn__svg_head head;
  const char *x_label, *y_label;  // with their units
  const char *foot;               // what the picture is of, in small letters below it; NULL: nothing
} tarn__chart;

// A line; x ascends. `low` and `high` are the edges of its band, or NULL.
typedef struct tarn__chart_line {
  tarn__chart_label label;
  const double *x, *y, *low, *high;
  size_t count;
  bool broken;  // a run that failed: thin, without markers, with a cross at its end
} tarn__chart_line;

// `y_low` and `y_high` are the ends of the y axis; NAN takes them from the values. What lies outside is cut off. The
// x axis begins at `x_low`. Without a line nothing but the axes is drawn.
void tarn__chart_lines(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count,
                       double x_low, double y_low, double y_high);

// Paths in a plane, whose x may turn back, from a hollow circle to a filled mark. Their labels are not drawn, only
// their looks (style); bands are not either.
void tarn__chart_paths(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count);

// A horizontal bar with its value in words beside it. `error` is half the length of the error bar; NAN: none.
typedef struct tarn__chart_bar {
  tarn__chart_label label;
  double value, error;
  const char *text;
} tarn__chart_bar;
void tarn__chart_bars(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_bar *bars, size_t count);

// A point with an error bar in y (NAN: none), and a hollow point at `x_also` on the same height, joined by a line (NAN:
// none).
typedef struct tarn__chart_point {
  tarn__chart_label label;
  double x, y, error, x_also;
} tarn__chart_point;
void tarn__chart_points(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_point *points, size_t count);

// A label as it stands in the charts: marker, name and row of boxes, and the note below, in as many lines as `width`
// asks for. (x, y) is the left end of the name's first base line.
enum { TARN__CHART_ABOVE = 14, TARN__CHART_WIDEST = 224 };
void tarn__chart_label_draw(tarn__buffer *out, double x, double y, double width, const tarn__chart_label *label);
// Its width where nothing is broken, at most TARN__CHART_WIDEST.
double tarn__chart_label_width(const tarn__chart_label *label);
// From TARN__CHART_ABOVE over the first base line to below the last line, with a gap to the next label.
double tarn__chart_label_height(double width, const tarn__chart_label *label);

// A label of a column, which wants to stand at a height `y`. A line leads to it from (x, y), where x is not NAN: level
// to the edge of the plot, then to the label.
typedef struct tarn__chart_end {
  const tarn__chart_label *label;
  double x, y;
} tarn__chart_end;
// Draws labels in a column beside the plot whose right edge is `edge`, between `top` and `bottom`. Sorts `ends` by y.
// Fails with MEMORY.
enum { TARN__CHART_LEADER = 26 };
tarn_status tarn__chart_column(tarn__buffer *out, tarn__chart_end *ends, size_t count, double edge, double width,
                               double top, double bottom) TARN_CHECKED;

#endif

// Charts: curves with bands, bars, and points. Every series is labelled directly, with a note on its frozen layers;
// dashes and markers supplement the colours.
#ifndef TARN_REPORT_SVG_CHART_H
#define TARN_REPORT_SVG_CHART_H

#include "report/svg.h"
#include "tarn/lab/results.h"

// The label of a series. `note` may be NULL, and so may the stacks, which are drawn as a row of small boxes.
typedef struct tarn__chart_label {
  const char *name, *note;
  const tarn_results_stack *encoder, *decoder;
  int style;  // see tarn__svg_colour(); 0 is the baseline
} tarn__chart_label;

// The common part of all charts. `head.title` is drawn; width and height are set by the chart.
typedef struct tarn__chart {
  tarn__svg_head head;
  const char *x_label, *y_label;  // with their units
  const char *foot;               // a small description below the picture; NULL: none
  bool logarithmic;               // both scales, of tarn__chart_lines(): all values are above 0
} tarn__chart;

// A line; x ascends. `low` and `high` are the edges of its band, or NULL.
typedef struct tarn__chart_line {
  tarn__chart_label label;
  const double *x, *y, *low, *high;
  size_t count;
  bool broken;                      // a failed run: thin, without markers, with a cross at its end
  const double *point_x, *point_y;  // where the markers are, (points); NULL: at equal distances on the line
  size_t points;
} tarn__chart_line;

// `y_low` and `y_high` are the ends of the y axis; NAN: determined by the values. Values outside are clipped. The x
// axis starts at `x_low`. Without lines only the axes are drawn.
void tarn__chart_lines(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count,
                       double x_low, double y_low, double y_high);

// Paths in a plane, whose x need not be monotonic, from a hollow circle to a filled mark. Labels and bands are not
// drawn; labels only define the style.
void tarn__chart_paths(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_line *lines, size_t count);

// A horizontal bar with its value in words. `error` is half the length of the error bar; NAN: none.
typedef struct tarn__chart_bar {
  tarn__chart_label label;
  double value, error;
  const char *text;
} tarn__chart_bar;
void tarn__chart_bars(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_bar *bars, size_t count);

// A point with an error bar in y (NAN: none), and a hollow point at `x_also` at the same height, joined by a line (NAN:
// none).
typedef struct tarn__chart_point {
  tarn__chart_label label;
  double x, y, error, x_also;
} tarn__chart_point;
void tarn__chart_points(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_point *points, size_t count);

// A label in a chart: marker, name and row of boxes, and the note below, wrapped to `width`. (x, y) is the left end of
// the name's first baseline.
enum { TARN__CHART_ABOVE = 14, TARN__CHART_WIDEST = 224 };
void tarn__chart_label_draw(tarn__buffer *out, double x, double y, double width, const tarn__chart_label *label);
// Its width without line breaks, at most TARN__CHART_WIDEST.
double tarn__chart_label_width(const tarn__chart_label *label);
// From TARN__CHART_ABOVE above the first baseline to below the last line, with a gap to the next label.
double tarn__chart_label_height(double width, const tarn__chart_label *label);

// A label in a column, with its wanted height `y`. A line leads to it from (x, y), unless x is NAN: horizontally to the
// edge of the plot, then to the label.
typedef struct tarn__chart_end {
  const tarn__chart_label *label;
  double x, y;
} tarn__chart_end;
// Draws labels in a column beside the plot with right edge `edge`, between `top` and `bottom`. Sorts `ends` by y. Fails
// with MEMORY.
enum { TARN__CHART_LEADER = 26 };
tarn_status tarn__chart_column(tarn__buffer *out, tarn__chart_end *ends, size_t count, double edge, double width,
                               double top, double bottom) TARN_CHECKED;

#endif

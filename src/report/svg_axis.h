// Axes with round ticks, and placement of labels without overlap.
#ifndef TARN_REPORT_SVG_AXIS_H
#define TARN_REPORT_SVG_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

// A linear or logarithmic map from values to units of the picture.
typedef struct tarn__svg_axis {
  double low, high;    // values at both ends
  double from, to;     // positions of the ends
  double first, step;  // ticks
  int count, decimals;
  bool logarithmic;
  int decade;  // of a logarithmic axis: ticks in each power of ten, `first` being the number of the first one; 0: ticks
               // as of a linear one
} tarn__svg_axis;

// Ticks at multiples of 1, 2 or 5 times a power of ten, at most `most` of them (2 or more). With `whole` the ends are
// extended to ticks. An empty range is widened around its value; values that are not finite count as 0.
tarn__svg_axis tarn__svg_axis_make(double low, double high, int most, bool whole);
// The same for values above 0 on a logarithmic scale: ticks at 1, 2 and 5 times powers of ten or at these powers, or,
// of a range below a factor of 10, as on a linear axis.
tarn__svg_axis tarn__svg_axis_make_log(double low, double high, int most);
double tarn__svg_axis_at(const tarn__svg_axis *axis, double value);
double tarn__svg_axis_tick(const tarn__svg_axis *axis, int index);

// The text of a tick.
enum { TARN__SVG_NUMBER = 64 };
void tarn__svg_axis_text(char text[TARN__SVG_NUMBER], const tarn__svg_axis *axis, int index);

// A value with the given decimals, thousands separated by thin spaces, and a typographic minus sign.
void tarn__svg_number(char text[TARN__SVG_NUMBER], double value, int decimals);

// Moves wanted places (ascending) apart so that each has its own `heights` before the next one, as little as possible,
// within low .. high (the end of the last one) if there is space.
void tarn__svg_spread(double *places, const double *heights, size_t count, double low, double high);

// A plot: the area between the axes, with `left`, `top` and so on in picture units.
typedef struct tarn__svg_plot {
  double left, right, top, bottom;
  tarn__svg_axis x, y;
  const char *x_label, *y_label;  // with their units
  const char *title;
} tarn__svg_plot;

// Sets the ends of the axes and draws title, grid, ticks and labels. The space needed above is tarn__svg_title_height()
// and TARN__SVG_PLOT_HEAD, below FOOT.
enum { TARN__SVG_PLOT_HEAD = 36, TARN__SVG_PLOT_FOOT = 52, TARN__SVG_PLOT_LEFT = 58 };
void tarn__svg_plot_frame(tarn__buffer *out, tarn__svg_plot *plot);

// The title of a chart, wrapped.
double tarn__svg_title_height(const char *title);
void tarn__svg_title(tarn__buffer *out, const char *title);

// The name of an x axis below `bottom`, centred in left .. right as far as the picture's width allows.
void tarn__svg_x_label(tarn__buffer *out, double left, double right, double bottom, const char *text);

// Small text below a picture, from `y`, wrapped; NULL: nothing, of zero height.
double tarn__svg_foot_height(const char *text, double width);
void tarn__svg_foot(tarn__buffer *out, double y, double width, const char *text);

#endif

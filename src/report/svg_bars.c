// Horizontal bars with error bars: names on the left, formatted values on the right.
#include <math.h>

#include "report/svg_axis.h"
#include "report/svg_chart.h"

enum { ROW = 48, BAR = 20, HEAD = 14, WHISKER = 5 };

static void bar(tarn__buffer *out, const tarn__svg_axis *axis, const tarn__chart_bar *item, double y) {
  double zero = tarn__svg_axis_at(axis, 0);
  double end = tarn__svg_axis_at(axis, item->value);
  tarn__svg_rect(out, fmin(zero, end), y - BAR / 2.0, fmax(fabs(end - zero), 1), BAR, 0,
                 tarn__svg_colour(item->label.style), item->label.style == 0 ? 0.75 : 0.6);
  if (isnan(item->error)) return;
  double low = tarn__svg_axis_at(axis, item->value - item->error);
  double high = tarn__svg_axis_at(axis, item->value + item->error);
  tarn__svg_line(out, low, y, high, y, "ink", 1.6, NULL);
  tarn__svg_line(out, low, y - WHISKER, low, y + WHISKER, "ink", 1.6, NULL);
  tarn__svg_line(out, high, y - WHISKER, high, y + WHISKER, "ink", 1.6, NULL);
}

static double row_height(const tarn__chart_bar *item, double names) {
  return fmax(ROW, tarn__chart_label_height(names, &item->label) + 8);
}

static void draw_axis(tarn__buffer *out, const tarn__svg_axis *axis, double top, double bottom) {
  for (int i = 0; i < axis->count; i++) {
    char text[TARN__SVG_NUMBER];
    double value = tarn__svg_axis_tick(axis, i);
    double x = tarn__svg_axis_at(axis, value);
    tarn__svg_line(out, x, top, x, bottom, value == 0 ? "soft" : "grid", value == 0 ? 1.2 : 1, NULL);
    tarn__svg_number(text, value, axis->decimals);
    tarn__svg_text(out, x, bottom + 20, (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_MIDDLE, "soft", false}, text);
  }
}

void tarn__chart_bars(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_bar *bars, size_t count) {
  double names = 40, words = 40, low = 0, high = 0;
  for (size_t i = 0; i < count; i++) {
    double error = isnan(bars[i].error) ? 0 : bars[i].error;
    names = fmax(names, tarn__chart_label_width(&bars[i].label));
    words = fmax(words, tarn__svg_text_width(bars[i].text, TARN__SVG_TEXT));
    low = fmin(low, bars[i].value - error);
    high = fmax(high, bars[i].value + error);
  }
  double bottom = tarn__svg_title_height(chart->head.title) + HEAD;
  const double top = bottom;
  for (size_t i = 0; i < count; i++) bottom += row_height(&bars[i], names);
  tarn__svg_axis axis = tarn__svg_axis_make(low, high, 6, true);
  axis.from = 12 + names + 14;
  axis.to = TARN__SVG_WIDTH - words - 20;
  tarn__svg_head head = chart->head;
  head.width = TARN__SVG_WIDTH;
  head.height = bottom + TARN__SVG_PLOT_FOOT + tarn__svg_foot_height(chart->foot, head.width);
  tarn__svg_open(out, &head);
  tarn__svg_title(out, head.title);
  draw_axis(out, &axis, top, bottom);
  tarn__svg_x_label(out, axis.from, axis.to, bottom, chart->x_label);
  double y = top;
  for (size_t i = 0; i < count; i++) {
    const double height = row_height(&bars[i], names);
    const double middle = y + height / 2;
    bar(out, &axis, &bars[i], middle);
    if (bars[i].label.style == 0) {  // a line for comparison with the baseline
      double x = tarn__svg_axis_at(&axis, bars[i].value);
      tarn__svg_line(out, x, top, x, bottom, "ink", 1, "3 4");
    }
    const double label = tarn__chart_label_height(names, &bars[i].label);
    tarn__chart_label_draw(out, 12, middle - label / 2 + TARN__CHART_ABOVE + 4, names, &bars[i].label);
    tarn__svg_text(out, TARN__SVG_WIDTH - 12, middle + 5, (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_END, "ink", false},
                   bars[i].text);
    y += height;
  }
  tarn__svg_foot(out, bottom + TARN__SVG_PLOT_FOOT, head.width, chart->foot);
  tarn__svg_close(out);
}

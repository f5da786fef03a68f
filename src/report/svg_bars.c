// Horizontal bars with error bars: names on the left, values in words on the right.
#include <math.h>

#include "report/svg_axis.h"
#include "report/svg_chart.h"

enum { LABELS_WIDEST = 300, ROW = 48, BAR = 20, HEAD = 40, WHISKER = 5 };

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

void tarn__chart_bars(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_bar *bars, size_t count) {
  double names = 40, words = 40, low = 0, high = 0;
  for (size_t i = 0; i < count; i++) {
    double error = isnan(bars[i].error) ? 0 : bars[i].error;
    names = fmax(names, tarn__chart_label_width(&bars[i].label));
    words = fmax(words, tarn__svg_text_width(bars[i].text, TARN__SVG_TEXT));
    low = fmin(low, bars[i].value - error);
    high = fmax(high, bars[i].value + error);
  }
  names = fmin(names, LABELS_WIDEST);
  double top = HEAD;
  double bottom = top + (double)count * ROW;
  tarn__svg_axis axis = tarn__svg_axis_make(low, high, 6, true);
  axis.from = 12 + names + 14;
  axis.to = TARN__SVG_WIDTH - words - 20;
  tarn__svg_head head = chart->head;
  head.width = TARN__SVG_WIDTH;
  head.height = bottom + TARN__SVG_PLOT_FOOT;
  tarn__svg_open(out, &head);
  tarn__svg_text(out, 12, 22, (tarn__svg_font){TARN__SVG_HEADING, TARN__SVG_START, "ink", true}, head.title);
  for (int i = 0; i < axis.count; i++) {
    char text[TARN__SVG_NUMBER];
    double value = tarn__svg_axis_tick(&axis, i);
    double x = tarn__svg_axis_at(&axis, value);
    tarn__svg_line(out, x, top, x, bottom, value == 0 ? "soft" : "grid", value == 0 ? 1.2 : 1, NULL);
    tarn__svg_number(text, value, axis.decimals);
    tarn__svg_text(out, x, bottom + 20, (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_MIDDLE, "soft", false}, text);
  }
  tarn__svg_text(out, (axis.from + axis.to) / 2, bottom + 42,
                 (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_MIDDLE, "soft", false}, chart->x_label);
  for (size_t i = 0; i < count; i++) {
    double y = top + ((double)i + 0.5) * ROW;
    bar(out, &axis, &bars[i], y);
    if (bars[i].label.style == 0) {  // a line for comparison with the baseline
      double x = tarn__svg_axis_at(&axis, bars[i].value);
      tarn__svg_line(out, x, top, x, bottom, "ink", 1, "3 4");
    }
    tarn__chart_label_draw(out, 12, y - 2, names, &bars[i].label);
    tarn__svg_text(out, TARN__SVG_WIDTH - 12, y + 5, (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_END, "ink", false},
                   bars[i].text);
  }
  tarn__svg_close(out);
}

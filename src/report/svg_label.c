#include <math.h>
#include <stddef.h>

#include "report/svg_chart.h"
#include "report/svg_layers.h"

enum { MARKER = 16, GAP = 8 };

static double strip_width(const tarn__chart_label *label) {
  return label->encoder && label->decoder ? GAP + tarn__svg_strip_width(label->encoder, label->decoder) : 0;
}

double tarn__chart_label_width(const tarn__chart_label *label) {
  double name = tarn__svg_text_width(label->name, TARN__SVG_TEXT) * 1.06 + strip_width(label);  // bold letters
  double note = label->note ? tarn__svg_text_width(label->note, TARN__SVG_SMALL) : 0;
  return MARKER + fmax(name, note);
}

void tarn__chart_label_draw(tarn__buffer *out, double x, double y, double width, const tarn__chart_label *label) {
  double room = width - MARKER;
  double strip = strip_width(label);
  double name = fmin(tarn__svg_text_width(label->name, TARN__SVG_TEXT) * 1.06, room);
  tarn__svg_marker(out, label->style, x + 5, y - 5, 4.5);
  tarn__svg_text_within(out, x + MARKER, y, (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_START, "ink", true}, name + 1,
                        label->name);
  if (strip > 0 && name + strip <= room + 1)
    tarn__svg_strip(out, x + MARKER + name + GAP, y, label->encoder, label->decoder);
  if (label->note)
    tarn__svg_text_within(out, x + MARKER, y + TARN__CHART_NOTE,
                          (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_START, "soft", false}, room, label->note);
}

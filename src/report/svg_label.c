#include <math.h>
#include <stddef.h>

#include "base/memory.h"
#include "report/svg_axis.h"
#include "report/svg_chart.h"
#include "report/svg_layers.h"
#include "report/svg_wrap.h"

enum { MARKER = 16, GAP = 8, NAME_PITCH = 17, NOTE_PITCH = 15, NOTE = 16, BELOW = 11 };

static double strip_width(const tarn__chart_label *label) {
  return label->encoder && label->decoder ? GAP + tarn__svg_strip_width(label->encoder, label->decoder) : 0;
}

// A wrapped label. The row of boxes follows the name if it fits, else it has its own line.
typedef struct broken {
  tarn__svg_lines name, note;
  double strip_x;  // from the left end of the name
  int rows;        // of the name and the row of boxes
} broken;

static broken break_up(double width, const tarn__chart_label *label) {
  const double room = width - MARKER;
  broken b = {.name = tarn__svg_wrap(label->name, TARN__SVG_TEXT * 1.06, room)};  // bold letters
  b.rows = b.name.count;
  const double strip = strip_width(label);
  if (strip > 0) {
    b.strip_x = tarn__svg_text_width(label->name + b.name.lines[b.name.count - 1].start, TARN__SVG_TEXT * 1.06) + GAP;
    if (b.strip_x - GAP + strip > room + 1) b.strip_x = 0, b.rows++;
  }
  if (label->note) b.note = tarn__svg_wrap(label->note, TARN__SVG_SMALL, room);
  return b;
}

double tarn__chart_label_width(const tarn__chart_label *label) {
  const double name = tarn__svg_text_width(label->name, TARN__SVG_TEXT * 1.06) + strip_width(label);
  const double note = label->note ? tarn__svg_text_width(label->note, TARN__SVG_SMALL) : 0;
  return fmin(MARKER + fmax(name, note) + 1, TARN__CHART_WIDEST);
}

double tarn__chart_label_height(double width, const tarn__chart_label *label) {
  const broken b = break_up(width, label);
  const double note = b.note.count > 0 ? NOTE + (b.note.count - 1) * NOTE_PITCH : 0;
  return TARN__CHART_ABOVE + (b.rows - 1) * NAME_PITCH + note + BELOW;
}

void tarn__chart_label_draw(tarn__buffer *out, double x, double y, double width, const tarn__chart_label *label) {
  const broken b = break_up(width, label);
  const double last = y + (b.rows - 1) * NAME_PITCH;
  tarn__svg_marker(out, label->style, x + 5, y - 5, 4.5);
  tarn__svg_wrap_draw(out, x + MARKER, y, (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_START, "ink", true}, NAME_PITCH,
                      &b.name);
  if (strip_width(label) > 0) tarn__svg_strip(out, x + MARKER + b.strip_x, last, label->encoder, label->decoder);
  if (label->note)
    tarn__svg_wrap_draw(out, x + MARKER, last + NOTE, (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_START, "soft", false},
                        NOTE_PITCH, &b.note);
}

static void sort(tarn__chart_end *ends, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const tarn__chart_end end = ends[i];
    size_t at = i;
    for (; at > 0 && ends[at - 1].y > end.y; at--) ends[at] = ends[at - 1];
    ends[at] = end;
  }
}

tarn_status tarn__chart_column(tarn__buffer *out, tarn__chart_end *ends, size_t count, double edge, double width,
                               double top, double bottom) {
  void *memory = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * count, sizeof(double)));
  double *places = memory, *heights = places + count;
  sort(ends, count);
  for (size_t i = 0; i < count; i++) {
    places[i] = ends[i].y - TARN__CHART_ABOVE + 5;  // the middle of the name is at y
    heights[i] = tarn__chart_label_height(width, ends[i].label);
  }
  tarn__svg_spread(places, heights, count, top, bottom);
  for (size_t i = 0; i < count; i++) {
    const char *colour = tarn__svg_colour(ends[i].label->style);
    const double y = places[i] + TARN__CHART_ABOVE;
    if (!isnan(ends[i].x)) {
      if (ends[i].x + 4 < edge) tarn__svg_line(out, ends[i].x + 3, ends[i].y, edge, ends[i].y, colour, 1, "1 3");
      tarn__svg_line(out, fmax(edge, ends[i].x + 3), ends[i].y, edge + TARN__CHART_LEADER - 3, y - 5, colour, 1, NULL);
    }
    tarn__chart_label_draw(out, edge + TARN__CHART_LEADER, y, width, ends[i].label);
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// Line wrapping of a picture's text, since SVG has none.
#ifndef TARN_REPORT_SVG_WRAP_H
#define TARN_REPORT_SVG_WRAP_H

#include "report/svg.h"

// More lines than a folder name (255 bytes) needs in any chart.
enum { TARN__SVG_WRAP_LINES = 16 };

typedef struct tarn__svg_lines {
  const char *text;
  double width;
  struct {
    size_t start, length;  // bytes of `text`
  } lines[TARN__SVG_WRAP_LINES];
  int count;  // at least 1; the last line has the rest
} tarn__svg_lines;

// Breaks at spaces and after - _ / , = + ), and within a word only if it is wider than `width`. `size` is the font
// size.
tarn__svg_lines tarn__svg_wrap(const char *text, double size, double width);

// Draws the lines `pitch` apart, with the first baseline at y. A last line that is too wide, which only occurs beyond
// TARN__SVG_WRAP_LINES, is truncated, with the whole text as a tooltip.
void tarn__svg_wrap_draw(tarn__buffer *out, double x, double y, tarn__svg_font font, double pitch,
                         const tarn__svg_lines *lines);

// The width of the widest line.
double tarn__svg_wrap_width(const tarn__svg_lines *lines, double size);

#endif

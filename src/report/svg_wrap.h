// Text of a picture broken into lines, since SVG breaks none.
#ifndef TARN_REPORT_SVG_WRAP_H
#define TARN_REPORT_SVG_WRAP_H

#include "report/svg.h"

// More lines than a name of a folder (255 bytes) makes in any chart.
enum { TARN__SVG_WRAP_LINES = 16 };

typedef struct tarn__svg_lines {
  const char *text;
  double width;
  struct {
    size_t start, length;  // bytes of `text`
  } lines[TARN__SVG_WRAP_LINES];
  int count;  // at least 1; the last line has all that is left
} tarn__svg_lines;

// Breaks at spaces and behind - _ / , = + ), and within a word that is wider than `width` alone. `size` is that of the
// letters.
tarn__svg_lines tarn__svg_wrap(const char *text, double size, double width);

// Draws the lines `pitch` apart, the base line of the first at y. A last line that is too wide, which only text beyond
// TARN__SVG_WRAP_LINES makes, is cut, with the whole text as a tooltip.
void tarn__svg_wrap_draw(tarn__buffer *out, double x, double y, tarn__svg_font font, double pitch,
                         const tarn__svg_lines *lines);

// The width of the widest line.
double tarn__svg_wrap_width(const tarn__svg_lines *lines, double size);

#endif

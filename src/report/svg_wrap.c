#include "report/svg_wrap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/utf8.h"

enum { LINE = 1024 };  // maximum bytes of a line

static double width_of(const char *text, size_t length, double size) {
  char part[LINE];
  snprintf(part, sizeof part, "%.*s", (int)length, text);
  return tarn__svg_text_width(part, size);
}

// The bytes of the first line: as much as fits, up to the last possible break.
static size_t first_line(const char *text, size_t left, double size, double width) {
  size_t end = 0, last = 0;
  while (end < left) {
    int32_t code = -1;
    const size_t length = tarn__utf8_decode(&code, text + end, left - end);
    if (code == ' ') last = end;
    if (end > 0 && code != ' ' && (end + length >= LINE || width_of(text, end + length, size) > width))
      return last > 0 ? last : end;
    end += length;
    // Behind these marks, but not before one that ends a part of a sentence.
    if (code > 0 && code < 128 && end < left && strchr("-_/,=+)", code) && !strchr(",;:.)", text[end])) last = end;
  }
  return left;
}

tarn__svg_lines tarn__svg_wrap(const char *text, double size, double width) {
  tarn__svg_lines out = {.text = text, .width = width};
  const size_t whole = strlen(text);
  size_t start = 0;
  do {
    const bool last = out.count == TARN__SVG_WRAP_LINES - 1;
    const size_t length = last ? whole - start : first_line(text + start, whole - start, size, width);
    out.lines[out.count].start = start;
    out.lines[out.count++].length = length;
    start += length;
    while (start < whole && text[start] == ' ') start++;
  } while (start < whole);
  return out;
}

void tarn__svg_wrap_draw(tarn__buffer *out, double x, double y, tarn__svg_font font, double pitch,
                         const tarn__svg_lines *lines) {
  char part[LINE];
  for (int i = 0; i < lines->count; i++) {
    snprintf(part, sizeof part, "%.*s", (int)lines->lines[i].length, lines->text + lines->lines[i].start);
    if (i + 1 < TARN__SVG_WRAP_LINES)
      tarn__svg_text(out, x, y + i * pitch, font, part);
    else
      tarn__svg_text_within(out, x, y + i * pitch, font, lines->width, part);
  }
}

double tarn__svg_wrap_width(const tarn__svg_lines *lines, double size) {
  double width = 0;
  for (int i = 0; i < lines->count; i++)
    width = fmax(width, width_of(lines->text + lines->lines[i].start, lines->lines[i].length, size));
  return width;
}

// Writes the elements of an SVG picture. Colours are classes that set the CSS colour, and every element paints with
// currentColor, so one picture works in light and in dark mode, inside a page and as a separate file.
#ifndef TARN_REPORT_SVG_H
#define TARN_REPORT_SVG_H

#include <stdbool.h>

#include "base/buffer.h"

// Font sizes in units of the picture, whose width is 700 (so a window of 600 pixels shows them at 0.8).
enum { TARN__SVG_WIDTH = 700, TARN__SVG_HEADING = 17, TARN__SVG_TEXT = 15, TARN__SVG_SMALL = 13 };

// The colours: paper, ink, soft (secondary text), grid, and tarn__svg_colour() of a series.
extern const char tarn__svg_style[];

typedef struct tarn__svg_head {
  const char *id;           // letters, digits and dashes; unique in a page
  const char *title;        // for screen readers, and as a tooltip
  const char *description;  // likewise, one or two sentences
  double width, height;
  bool standalone;  // a separate file: with the XML declaration, the colours and a background
} tarn__svg_head;

void tarn__svg_open(tarn__buffer *out, const tarn__svg_head *head);
void tarn__svg_close(tarn__buffer *out);

typedef enum tarn__svg_anchor { TARN__SVG_START, TARN__SVG_MIDDLE, TARN__SVG_END } tarn__svg_anchor;

typedef struct tarn__svg_font {
  double size;
  tarn__svg_anchor anchor;
  const char *colour;  // a class
  bool bold;
} tarn__svg_font;

// (x, y) is on the baseline.
void tarn__svg_text(tarn__buffer *out, double x, double y, tarn__svg_font font, const char *text);
// The same, truncated to `width` with an ellipsis; the whole text is then a tooltip.
void tarn__svg_text_within(tarn__buffer *out, double x, double y, tarn__svg_font font, double width, const char *text);
// An upper estimate, since the reader's font is unknown.
double tarn__svg_text_width(const char *text, double size);

// `dash` is NULL for a solid line.
void tarn__svg_line(tarn__buffer *out, double x1, double y1, double x2, double y2, const char *colour, double width,
                    const char *dash);
void tarn__svg_rect(tarn__buffer *out, double x, double y, double width, double height, double radius,
                    const char *colour, double opacity);

// The style of series `index`: a colour (class), a dash and a marker, which repeat with different periods. Series 0 is
// the baseline: ink, solid, disc.
const char *tarn__svg_colour(int index);
const char *tarn__svg_dash(int index);
void tarn__svg_marker(tarn__buffer *out, int index, double x, double y, double radius);

#endif

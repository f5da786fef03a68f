#include "report/svg.h"

#include <stdio.h>
#include <string.h>

#include "report/markup.h"
#include "text/utf8.h"

// Series use the hues of Okabe and Ito (2008), darkened on white and lightened on black to a contrast of at least 3.
const char tarn__svg_style[] =
    ".paper{color:#fff}.ink,.c0{color:#1b2027}.soft{color:#535c66}.grid{color:#dde2e7}"
    ".c1{color:#0072b2}.c2{color:#d55e00}.c3{color:#008f68}.c4{color:#b4508f}.c5{color:#9a6f00}.c6{color:#3f8fd0}"
    ".c7{color:#7a3b1d}\n"
    "@media screen and (prefers-color-scheme:dark){"
    ".paper{color:#16191d}.ink,.c0{color:#e8ebee}.soft{color:#a7b0ba}.grid{color:#353b42}"
    ".c1{color:#4aa8e0}.c2{color:#f28a3c}.c3{color:#2fc197}.c4{color:#e19ac6}.c5{color:#e0b429}.c6{color:#9ccbf0}"
    ".c7{color:#c99a7d}}\n";

enum { COLOURS = 8, DASHES = 5, MARKERS = 8 };

void tarn__svg_open(tarn__buffer *out, const tarn__svg_head *head) {
  if (head->standalone) tarn__buffer_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  tarn__buffer_format(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
                      "height=\"%.0f\" role=\"img\" aria-labelledby=\"%s-title %s-text\" "
                      "font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n",
                      head->width, head->height, head->width, head->height, head->id, head->id);
  tarn__buffer_format(out, "<title id=\"%s-title\">", head->id);
  tarn__markup_xml(out, head->title);
  tarn__buffer_format(out, "</title>\n<desc id=\"%s-text\">", head->id);
  tarn__markup_xml(out, head->description);
  tarn__buffer_add(out, "</desc>\n");
  if (!head->standalone) return;
  tarn__buffer_format(out, "<style>\n%s</style>\n", tarn__svg_style);
  tarn__svg_rect(out, 0, 0, head->width, head->height, 0, "paper", 1);
}

void tarn__svg_close(tarn__buffer *out) { tarn__buffer_add(out, "</svg>\n"); }

static void text_open(tarn__buffer *out, double x, double y, tarn__svg_font font) {
  static const char *const anchors[] = {"start", "middle", "end"};
  tarn__buffer_format(out, "<text class=\"%s\" fill=\"currentColor\" x=\"%.1f\" y=\"%.1f\" font-size=\"%g\"",
                      font.colour, x, y, font.size);
  if (font.anchor != TARN__SVG_START) tarn__buffer_format(out, " text-anchor=\"%s\"", anchors[font.anchor]);
  if (font.bold) tarn__buffer_add(out, " font-weight=\"600\"");
  tarn__buffer_add(out, ">");
}

void tarn__svg_text(tarn__buffer *out, double x, double y, tarn__svg_font font, const char *text) {
  text_open(out, x, y, font);
  tarn__markup_xml(out, text);
  tarn__buffer_add(out, "</text>\n");
}

// Character widths of DejaVu Sans, the widest of the likely system fonts, by group of letters.
static double letter_width(int32_t code) {
  if (code < 0) return 0.7;
  if (code >= 0x1100) return code >= 0x2000 && code < 0x2e80 ? 0.65 : 1.0;  // punctuation, then wide scripts
  if (code < 128 && strchr(" .,:;'|!ijlI/\\", code)) return 0.34;
  if (code < 128 && strchr("()[]{}frt-\"", code)) return 0.41;
  if (code < 128 && strchr("mwMW@%", code)) return 0.98;
  if ((code >= 'A' && code <= 'Z') || code == '+' || code == '=' || code == '~') return 0.75;
  return 0.64;
}

double tarn__svg_text_width(const char *text, double size) {
  double width = 0;
  for (size_t left = strlen(text); left > 0;) {
    int32_t code = -1;
    size_t length = tarn__utf8_decode(&code, text, left);
    width += letter_width(code);
    text += length;
    left -= length;
  }
  return width * size;
}

void tarn__svg_text_within(tarn__buffer *out, double x, double y, tarn__svg_font font, double width, const char *text) {
  if (tarn__svg_text_width(text, font.size) <= width) {
    tarn__svg_text(out, x, y, font, text);
    return;
  }
  char cut[256];
  size_t kept = 0;
  double used = tarn__svg_text_width("\xE2\x80\xA6", font.size);
  for (size_t left = strlen(text); kept < left && kept + 8 < sizeof cut;) {
    int32_t code = -1;
    size_t length = tarn__utf8_decode(&code, text + kept, left - kept);
    used += letter_width(code) * font.size;
    if (used > width) break;
    kept += length;
  }
  snprintf(cut, sizeof cut, "%.*s\xE2\x80\xA6", (int)kept, text);
  text_open(out, x, y, font);
  tarn__markup_xml(out, cut);
  tarn__buffer_add(out, "<title>");
  tarn__markup_xml(out, text);
  tarn__buffer_add(out, "</title></text>\n");
}

void tarn__svg_line(tarn__buffer *out, double x1, double y1, double x2, double y2, const char *colour, double width,
                    const char *dash) {
  tarn__buffer_format(out,
                      "<line class=\"%s\" stroke=\"currentColor\" stroke-width=\"%g\" x1=\"%.1f\" y1=\"%.1f\" "
                      "x2=\"%.1f\" y2=\"%.1f\"",
                      colour, width, x1, y1, x2, y2);
  if (dash) tarn__buffer_format(out, " stroke-dasharray=\"%s\"", dash);
  tarn__buffer_add(out, "/>\n");
}

void tarn__svg_rect(tarn__buffer *out, double x, double y, double width, double height, double radius,
                    const char *colour, double opacity) {
  tarn__buffer_format(out,
                      "<rect class=\"%s\" fill=\"currentColor\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
                      colour, x, y, width, height);
  if (radius > 0) tarn__buffer_format(out, " rx=\"%g\"", radius);
  if (opacity < 1) tarn__buffer_format(out, " fill-opacity=\"%g\"", opacity);
  tarn__buffer_add(out, "/>\n");
}

const char *tarn__svg_colour(int index) {
  static const char *const colours[COLOURS] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
  return index == 0 ? colours[0] : colours[1 + (index - 1) % (COLOURS - 1)];
}

const char *tarn__svg_dash(int index) {
  static const char *const dashes[DASHES] = {"9 4", "2 3", "10 3 2 3", "5 3", "14 4 2 3 2 4"};
  return index == 0 ? NULL : dashes[(index - 1) % DASHES];
}

// Corners on a unit circle around the centre.
static void polygon(tarn__buffer *out, const double (*corners)[2], int count, double x, double y, double radius) {
  tarn__buffer_add(out, "<polygon fill=\"currentColor\" points=\"");
  for (int i = 0; i < count; i++)
    tarn__buffer_format(out, "%s%.1f,%.1f", i ? " " : "", x + radius * corners[i][0], y + radius * corners[i][1]);
  tarn__buffer_add(out, "\"/>");
}

void tarn__svg_marker(tarn__buffer *out, int index, double x, double y, double radius) {
  static const double up[][2] = {{0, -1.25}, {1.15, 0.8}, {-1.15, 0.8}};
  static const double down[][2] = {{0, 1.25}, {1.15, -0.8}, {-1.15, -0.8}};
  static const double square[][2] = {{-0.95, -0.95}, {0.95, -0.95}, {0.95, 0.95}, {-0.95, 0.95}};
  static const double diamond[][2] = {{0, -1.4}, {1.2, 0}, {0, 1.4}, {-1.2, 0}};
  static const double plus[][2] = {{-0.4, -1.3}, {0.4, -1.3}, {0.4, -0.4}, {1.3, -0.4}, {1.3, 0.4},   {0.4, 0.4},
                                   {0.4, 1.3},   {-0.4, 1.3}, {-0.4, 0.4}, {-1.3, 0.4}, {-1.3, -0.4}, {-0.4, -0.4}};
  static const double flag[][2] = {{-1.0, -1.2}, {1.3, 0}, {-1.0, 1.2}};
  static const double hourglass[][2] = {{-1.1, -1.1}, {1.1, -1.1}, {-1.1, 1.1}, {1.1, 1.1}};
  tarn__buffer_format(out, "<g class=\"%s\">", tarn__svg_colour(index));
  switch (index % MARKERS) {
    case 0:
      tarn__buffer_format(out, "<circle fill=\"currentColor\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", x, y, radius);
      break;
    case 1:
      polygon(out, square, 4, x, y, radius);
      break;
    case 2:
      polygon(out, up, 3, x, y, radius);
      break;
    case 3:
      polygon(out, diamond, 4, x, y, radius);
      break;
    case 4:
      polygon(out, down, 3, x, y, radius);
      break;
    case 5:
      polygon(out, plus, 12, x, y, radius);
      break;
    case 6:
      polygon(out, hourglass, 4, x, y, radius);
      break;
    default:
      polygon(out, flag, 3, x, y, radius);
      break;
  }
  tarn__buffer_add(out, "</g>\n");
}

#include "report/svg_axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"
#include "report/svg_wrap.h"

static double round_step(double raw) {
  double power = pow(10, floor(log10(raw)));
  double part = raw / power;
  if (part <= 1.0000001) return power;
  if (part <= 2.0000001) return 2 * power;
  if (part <= 5.0000001) return 5 * power;
  return 10 * power;
}

tarn__svg_axis tarn__svg_axis_make(double low, double high, int most, bool whole) {
  tarn__svg_axis axis = {0};
  if (!isfinite(low)) low = 0;
  if (!isfinite(high)) high = low;
  if (high - low <= 1e-9 * fmax(fabs(low), fabs(high))) {
    double half = low == 0 ? 0.5 : 0.05 * fabs(low);
    low -= half;
    high += half;
  }
  axis.step = round_step((high - low) / (most - 1));
  while (true) {
    axis.first = whole ? floor(low / axis.step + 1e-9) : ceil(low / axis.step - 1e-9);
    double last = whole ? ceil(high / axis.step - 1e-9) : floor(high / axis.step + 1e-9);
    axis.count = (int)(last - axis.first) + 1;
    axis.low = whole ? axis.first * axis.step : low;
    axis.high = whole ? last * axis.step : high;
    if (axis.count <= most) break;
    axis.step = round_step(axis.step * 1.5);
  }
  axis.first *= axis.step;
  while (axis.decimals < 9 &&
         fabs(axis.step * pow(10, axis.decimals) - round(axis.step * pow(10, axis.decimals))) > 1e-6)
    axis.decimals++;
  return axis;
}

// Tick number n of a logarithmic axis, 0 being at 1.
static double power_tick(const tarn__svg_axis *axis, int number) {
  static const double parts[] = {1, 2, 5};
  const double decade = floor((double)number / axis->decade);
  return parts[number - (int)decade * axis->decade] * pow(10, decade);
}

tarn__svg_axis tarn__svg_axis_make_log(double low, double high, int most) {
  if (!(high / low >= 10)) {
    tarn__svg_axis axis = tarn__svg_axis_make(low, high, most, false);
    axis.logarithmic = true;
    return axis;
  }
  tarn__svg_axis axis = {.low = low, .high = high, .logarithmic = true, .step = 1};
  for (axis.decade = 3; axis.decade > 0; axis.decade -= 2) {
    int first = axis.decade * (int)floor(log10(low)), last = axis.decade * (int)ceil(log10(high));
    while (power_tick(&axis, first) < low * (1 - 1e-9)) first++;
    while (power_tick(&axis, last) > high * (1 + 1e-9)) last--;
    axis.first = first, axis.count = last - first + 1;
    if (axis.count <= most || axis.decade == 1) break;
  }
  const int all = axis.count;
  while (axis.count > most) axis.step++, axis.count = (all - 1) / (int)axis.step + 1;
  return axis;
}

double tarn__svg_axis_at(const tarn__svg_axis *axis, double value) {
  const double part = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                        : (value - axis->low) / (axis->high - axis->low);
  return axis->from + part * (axis->to - axis->from);
}

double tarn__svg_axis_tick(const tarn__svg_axis *axis, int index) {
  if (axis->decade) return power_tick(axis, (int)axis->first + index * (int)axis->step);
  double value = axis->first + index * axis->step;
  return fabs(value) < axis->step * 1e-6 ? 0 : value;
}

void tarn__svg_number(char text[TARN__SVG_NUMBER], double value, int decimals) {
  char plain[TARN__SVG_NUMBER / 2];
  if (!isfinite(value) || fabs(value) >= 1e15) {
    snprintf(text, TARN__SVG_NUMBER, "%g", value);
    return;
  }
  int length = snprintf(plain, sizeof plain, "%.*f", decimals > 9 ? 9 : decimals, fabs(value));
  int whole = (int)strcspn(plain, ".");
  size_t used = 0;
  if (value < 0 && strspn(plain, "0.") != (size_t)length)
    used = (size_t)snprintf(text, TARN__SVG_NUMBER, "\xE2\x88\x92");
  for (int i = 0; i < length && used + 4 < TARN__SVG_NUMBER; i++) {
    if (whole > 4 && i > 0 && i < whole && (whole - i) % 3 == 0)
      used += (size_t)snprintf(text + used, TARN__SVG_NUMBER - used, "\xE2\x80\x89");
    text[used++] = plain[i];
  }
  text[used] = '\0';
}

void tarn__svg_axis_text(char text[TARN__SVG_NUMBER], const tarn__svg_axis *axis, int index) {
  static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const double value = tarn__svg_axis_tick(axis, index);
  const int power = axis->decade ? (int)floor(log10(value) + 1e-9) : 0;
  if (axis->decade && abs(power) >= 5 && abs(power) < 100) {
    const int part = (int)round(value / pow(10, power));
    char before[8] = "";
    if (part != 1) snprintf(before, sizeof before, "%d·", part);
    snprintf(text, TARN__SVG_NUMBER, "%s10%s%s%s", before, power < 0 ? "⁻" : "",
             abs(power) >= 10 ? digits[abs(power) / 10] : "", digits[abs(power) % 10]);
    return;
  }
  tarn__svg_number(text, value, axis->decade ? (power < 0 ? -power : 0) : axis->decimals);
}

// Groups of touching labels form blocks, each centred on the mean of its labels' wanted places (pooling of adjacent
// violators), which is the closest arrangement in the least-squares sense.
void tarn__svg_spread(double *places, const double *heights, size_t count, double low, double high) {
  double above = 0;                                                         // sum of the heights above
  for (size_t i = 0; i < count; above += heights[i++]) places[i] -= above;  // now they only need to be non-decreasing
  for (size_t end = 1; end < count; end++) {
    size_t first = end;
    double sum = places[end];
    while (first > 0 && places[first - 1] > sum / (double)(end - first + 1)) sum += places[--first];
    for (size_t i = first; i <= end; i++) places[i] = sum / (double)(end - first + 1);
  }
  const double highest = high - above;
  above = 0;
  for (size_t i = 0; i < count; above += heights[i++]) places[i] = fmax(fmin(places[i], highest), low) + above;
}

enum { TITLE_PITCH = 21, FOOT_SIZE = 11, FOOT_PITCH = 15, FOOT_GAP = 4 };

static tarn__svg_lines title_lines(const char *title) {
  return tarn__svg_wrap(title, TARN__SVG_HEADING * 1.06, TARN__SVG_WIDTH - 24);  // bold letters
}

double tarn__svg_title_height(const char *title) {
  const tarn__svg_lines lines = title_lines(title);
  return 5 + TITLE_PITCH * lines.count;
}

void tarn__svg_title(tarn__buffer *out, const char *title) {
  const tarn__svg_lines lines = title_lines(title);
  tarn__svg_wrap_draw(out, 12, 22, (tarn__svg_font){TARN__SVG_HEADING, TARN__SVG_START, "ink", true}, TITLE_PITCH,
                      &lines);
}

void tarn__svg_x_label(tarn__buffer *out, double left, double right, double bottom, const char *text) {
  const double half = tarn__svg_text_width(text, TARN__SVG_TEXT) / 2;
  const double middle = fmax(fmin((left + right) / 2, TARN__SVG_WIDTH - 8 - half), 8 + half);
  tarn__svg_text(out, middle, bottom + 42, (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_MIDDLE, "soft", false}, text);
}

double tarn__svg_foot_height(const char *text, double width) {
  if (!text) return 0;
  const tarn__svg_lines lines = tarn__svg_wrap(text, FOOT_SIZE, width - 24);
  return FOOT_GAP + FOOT_PITCH * lines.count;
}

void tarn__svg_foot(tarn__buffer *out, double y, double width, const char *text) {
  if (!text) return;
  const tarn__svg_lines lines = tarn__svg_wrap(text, FOOT_SIZE, width - 24);
  tarn__svg_wrap_draw(out, 12, y + FOOT_SIZE, (tarn__svg_font){FOOT_SIZE, TARN__SVG_START, "soft", false}, FOOT_PITCH,
                      &lines);
}

void tarn__svg_plot_frame(tarn__buffer *out, tarn__svg_plot *plot) {
  char text[TARN__SVG_NUMBER];
  plot->x.from = plot->left, plot->x.to = plot->right;
  plot->y.from = plot->bottom, plot->y.to = plot->top;
  tarn__svg_font small = {TARN__SVG_SMALL, TARN__SVG_START, "soft", false};
  tarn__svg_title(out, plot->title);
  tarn__svg_text(out, 12, tarn__svg_title_height(plot->title) + 18,
                 (tarn__svg_font){TARN__SVG_TEXT, TARN__SVG_START, "soft", false}, plot->y_label);
  for (int i = 0; i < plot->y.count; i++) {
    double value = tarn__svg_axis_tick(&plot->y, i);
    double y = tarn__svg_axis_at(&plot->y, value);
    tarn__svg_line(out, plot->left, y, plot->right, y, "grid", 1, NULL);
    tarn__svg_axis_text(text, &plot->y, i);
    small.anchor = TARN__SVG_END;
    tarn__svg_text(out, plot->left - 7, y + 4.5, small, text);
  }
  tarn__svg_line(out, plot->left, plot->bottom, plot->right, plot->bottom, "soft", 1.2, NULL);
  for (int i = 0; i < plot->x.count; i++) {
    double value = tarn__svg_axis_tick(&plot->x, i);
    double x = tarn__svg_axis_at(&plot->x, value);
    tarn__svg_line(out, x, plot->bottom, x, plot->bottom + 5, "soft", 1.2, NULL);
    tarn__svg_axis_text(text, &plot->x, i);
    small.anchor = TARN__SVG_MIDDLE;
    tarn__svg_text(out, x, plot->bottom + 20, small, text);
  }
  tarn__svg_x_label(out, plot->left, plot->right, plot->bottom, plot->x_label);
}

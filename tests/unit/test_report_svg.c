// The pieces of charts: ticks, numbers, places of labels, and text from outside.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "report/markup.h"
#include "report/svg_axis.h"
#include "report/svg_chart.h"
#include "report/svg_wrap.h"

static void ticks_are_round_and_few(void **state) {
  (void)state;
  static const double ranges[][2] = {{0, 36.7}, {27.4, 28.8},   {0, 5400}, {2.05, 2.31}, {-1, 1},         {0, 0},
                                     {5, 5},    {0, 1.0 / 3.0}, {0, 1e9},  {-40, -2},    {0.0001, 0.0009}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    for (int whole = 0; whole < 2; whole++) {
      tarn__svg_axis axis = tarn__svg_axis_make(ranges[i][0], ranges[i][1], 7, whole);
      assert_in_range(axis.count, 2, 7);
      assert_true(axis.low <= ranges[i][0] + 1e-9 && axis.high >= ranges[i][1] - 1e-9);
      double digits = axis.step / pow(10, floor(log10(axis.step) + 1e-9));
      assert_true(fabs(digits - 1) < 1e-6 || fabs(digits - 2) < 1e-6 || fabs(digits - 5) < 1e-6);
      double last = tarn__svg_axis_tick(&axis, axis.count - 1);
      assert_true(axis.first >= axis.low - 1e-9 && last <= axis.high * (1 + 1e-9) + 1e-9);
      if (whole)
        assert_true(fabs(last - axis.high) < 1e-6 * axis.step && fabs(axis.first - axis.low) < 1e-6 * axis.step);
    }
  }
  tarn__svg_axis axis = tarn__svg_axis_make(NAN, INFINITY, 5, true);
  assert_true(isfinite(axis.low) && axis.high > axis.low);
}

static void numbers_have_the_decimals_of_their_step(void **state) {
  (void)state;
  char text[TARN__SVG_NUMBER];
  assert_int_equal(tarn__svg_axis_make(0, 0.3, 7, true).decimals, 2);
  assert_int_equal(tarn__svg_axis_make(0, 300, 7, true).decimals, 0);
  tarn__svg_number(text, 1234, 0);
  assert_string_equal(text, "1234");
  tarn__svg_number(text, 57655.4, 0);
  assert_string_equal(text,
                      "57\xE2\x80\x89"
                      "655");
  tarn__svg_number(text, -0.25, 2);
  assert_string_equal(text,
                      "\xE2\x88\x92"
                      "0.25");
  tarn__svg_number(text, -0.001, 2);
  assert_string_equal(text, "0.00");
  tarn__svg_number(text, 1234567.891, 1);
  assert_string_equal(text,
                      "1\xE2\x80\x89"
                      "234\xE2\x80\x89"
                      "567.9");
}

// Logarithmic axes: equal factors are equal distances; ticks are round, within the range, and at most as many as asked.
static void axes_of_powers(void **state) {
  (void)state;
  static const double ranges[][2] = {{1e5, 1e8}, {2.1, 3.9}, {3e-7, 0.5}, {1, 1e40}, {90, 1100}, {5, 5}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    tarn__svg_axis axis = tarn__svg_axis_make_log(ranges[i][0], ranges[i][1], 7);
    axis.from = 0, axis.to = 100;
    assert_in_range(axis.count, 2, 7);
    for (int k = 0; k < axis.count; k++) {
      const double value = tarn__svg_axis_tick(&axis, k);
      assert_true(value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9));
      if (k > 0) assert_true(value > tarn__svg_axis_tick(&axis, k - 1));
    }
    const double middle = sqrt(axis.low * axis.high);
    assert_true(fabs(tarn__svg_axis_at(&axis, middle) - 50) < 1e-6);
  }
  char text[TARN__SVG_NUMBER];
  const tarn__svg_axis axis = tarn__svg_axis_make_log(2e5, 5e6, 7);
  tarn__svg_axis_text(text, &axis, 0);
  assert_string_equal(text, "2·10⁵");
  tarn__svg_axis_text(text, &axis, 2);
  assert_string_equal(text, "10⁶");
}

static void labels_keep_their_distance(void **state) {
  (void)state;
  srand(1);
  for (int round = 0; round < 200; round++) {
    double places[12], heights[12];
    double at = 0, all = 0;
    for (int i = 0; i < 12; i++) places[i] = at += rand() % 30;
    for (int i = 0; i < 12; i++) all += heights[i] = 20 + rand() % 40;
    tarn__svg_spread(places, heights, 12, 10, 10 + all + rand() % 100);
    for (int i = 0; i < 12; i++) {
      assert_true(places[i] >= 10 - 1e-9 && places[i] + heights[i] <= 10 + all + 100 + 1e-9);
      if (i > 0) assert_true(places[i] - places[i - 1] >= heights[i - 1] - 1e-9);
    }
  }
  const double forty[3] = {40, 40, 40};
  double far[3] = {100, 200, 300};
  tarn__svg_spread(far, forty, 3, 0, 500);
  assert_true(far[0] == 100 && far[1] == 200 && far[2] == 300);  // nothing moves that has room
  double near[2] = {100, 110};
  tarn__svg_spread(near, forty, 2, 0, 500);
  assert_true(fabs(near[0] - 85) < 1e-9 && fabs(near[1] - 125) < 1e-9);
}

static void text_is_broken_into_lines(void **state) {
  (void)state;
  static const char *const texts[] = {
      "", "short", "encoder 1 3 of 4 frozen but for norms and biases, parts of 2 more, 3 layers frozen during training",
      "a-name-of-a-variant-without-any-space_that/is,longer=than+most-names-are-and-goes-on",
      "W\xC3\xB6rterbuchverlagsmitarbeiterversammlungsprotokollf\xC3\xBChrerin\xE4\xB8\xAD\xE6\x96\x87\xE4\xB8\xAD"};
  for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
    const tarn__svg_lines lines = tarn__svg_wrap(texts[t], TARN__SVG_SMALL, 120);
    size_t at = 0;
    for (int i = 0; i < lines.count; i++) {
      char part[200];
      // Nothing is lost but the spaces at which lines end.
      while (texts[t][at] == ' ' && at < lines.lines[i].start) at++;
      assert_int_equal(lines.lines[i].start, at);
      at += lines.lines[i].length;
      snprintf(part, sizeof part, "%.*s", (int)lines.lines[i].length, texts[t] + lines.lines[i].start);
      assert_true(tarn__svg_text_width(part, TARN__SVG_SMALL) <= 120);
      assert_int_not_equal((unsigned char)part[0] & 0xc0, 0x80);  // no character is cut in two
    }
    assert_int_equal(at, strlen(texts[t]));
    assert_true(tarn__svg_wrap_width(&lines, TARN__SVG_SMALL) <= 120);
  }
  assert_int_equal(tarn__svg_wrap("short", TARN__SVG_SMALL, 120).count, 1);
  // No line begins with a comma, wherever it is broken.
  static const char processors[] = "a processor (of one kind), another (of another kind); 1 thread (of four).";
  for (double width = 60; width < 400; width += 3) {
    const tarn__svg_lines lines = tarn__svg_wrap(processors, TARN__SVG_SMALL, width);
    for (int i = 1; i < lines.count; i++) assert_null(strchr(",;.)", processors[lines.lines[i].start]));
  }
  assert_true(tarn__svg_wrap(texts[2], TARN__SVG_SMALL, 120).count > 3);
  // Beyond the last line the rest is kept together, and cut where it is drawn.
  char endless[4000];
  tarn__buffer out = {0};
  memset(endless, 'x', sizeof endless - 1);
  endless[sizeof endless - 1] = '\0';
  const tarn__svg_lines lines = tarn__svg_wrap(endless, TARN__SVG_SMALL, 120);
  assert_int_equal(lines.count, TARN__SVG_WRAP_LINES);
  tarn__svg_wrap_draw(&out, 0, 0, (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_START, "ink", false}, 15, &lines);
  assert_int_equal(out.status, TARN_STATUS_OK);
  assert_non_null(strstr(out.data, "\xE2\x80\xA6"));
  tarn__buffer_close(&out);
}

// The rectangles that lie behind the labels of points.
typedef struct rectangle {
  double x, y, width, height;
} rectangle;

static size_t patches(const char *svg, rectangle *out, size_t room) {
  size_t count = 0;
  const char *mark = "<rect class=\"paper\" fill=\"currentColor\" ";
  for (const char *at = strstr(svg, mark); at && count < room; at = strstr(at + 1, mark)) {
    rectangle *r = &out[count++];
    assert_int_equal(sscanf(at + strlen(mark), "x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &r->x, &r->y,
                            &r->width, &r->height),
                     4);
  }
  return count;
}

static void labels_of_points_do_not_overlap(void **state) {
  (void)state;
  static const char *const names[] = {"Model0", "Model1", "Model2", "Model3", "Model4", "ffn", "bigru", "layerdrop"};
  tarn__chart chart = {
      .head = {.id = "points", .title = "t", .description = "d"}, .x_label = "x", .y_label = "y", .foot = NULL};
  int column = 0;
  srand(2);
  for (int round = 0; round < 30; round++) {
    tarn__buffer out = {0};
    tarn__chart_point points[8];
    for (int i = 0; i < 8; i++)
      points[i] = (tarn__chart_point){.label = {.name = names[i], .note = "encoder 1 3 5 7 of 8 frozen", .style = i},
                                      .x = 10 + rand() % 20,
                                      .y = 28 + 0.05 * (rand() % 20),
                                      .error = 0.1,
                                      .x_also = 30};
    tarn__chart_points(&out, &chart, points, 8);
    assert_int_equal(out.status, TARN_STATUS_OK);
    rectangle r[8];
    const size_t beside = patches(out.data, r, 8);
    assert_true(beside == 8 || beside == 0);  // all next to their points, or all in a column
    column += beside == 0;
    for (size_t i = 0; i < beside; i++) {
      for (size_t k = 0; k < i; k++) {
        bool apart = r[i].x >= r[k].x + r[k].width || r[k].x >= r[i].x + r[i].width || r[i].y >= r[k].y + r[k].height ||
                     r[k].y >= r[i].y + r[i].height;
        assert_true(apart);
      }
    }
    tarn__buffer_close(&out);
  }
  assert_true(column < 15);
}

// Where lines of text stand in a picture.
typedef struct line_of_text {
  double x, y, size;
  char text[300];
} line_of_text;

static size_t read_texts(const char *svg, line_of_text *out, size_t room) {
  size_t count = 0;
  for (const char *at = strstr(svg, "<text "); at && count < room; at = strstr(at + 1, "<text ")) {
    line_of_text *t = &out[count++];
    const char *end = strchr(at, '>');
    assert_int_equal(sscanf(strstr(at, " x=\""), " x=\"%lf\" y=\"%lf\" font-size=\"%lf\"", &t->x, &t->y, &t->size), 3);
    if (strncmp(strstr(at, "font-size"), "font-size=\"13\" text-anchor", 27) == 0) count--;  // of an axis
    snprintf(t->text, sizeof t->text, "%.*s", (int)strcspn(end + 1, "<"), end + 1);
  }
  return count;
}

// Many variants with long names: no legend is cut, none crosses another or leaves the picture.
static void long_legends_are_whole(void **state) {
  (void)state;
  enum { MODELS = 12 };
  static char names[MODELS][160];
  static line_of_text texts[400];
  const char *foot =
      "Data data/multi30k/train; seeds 1 to 3; trained from 2026-11-20 to 2026-11-23 on Intel(R) Xeon(R) "
      "Processor (avx512_bf16), 2 threads; tarn 0.1.0.";
  tarn__chart chart = {
      .head = {.id = "long", .title = "t", .description = "d"}, .x_label = "x", .y_label = "y", .foot = foot};
  const double x[] = {0, 1}, y[] = {3, 4};
  tarn__chart_line lines[MODELS];
  tarn__chart_bar bars[MODELS];
  tarn__chart_point points[MODELS];
  for (int i = 0; i < MODELS; i++) {
    snprintf(names[i], sizeof names[i], "variant-%d-with-orthogonal-reservoirs-and-a-shared-feed-forward-network", i);
    const tarn__chart_label label = {
        .name = names[i],
        .note = "encoder 1 3 of 4 frozen but for norms and biases, input embeddings frozen",
        .style = i};
    lines[i] = (tarn__chart_line){.label = label, .x = x, .y = y, .count = 2};
    bars[i] = (tarn__chart_bar){label, 3 + i, 1, "30.25 \xC2\xB1 0.41"};
    points[i] = (tarn__chart_point){label, 1, 3 + 0.01 * i, 1, 2};
  }
  for (int kind = 0; kind < 3; kind++) {
    tarn__buffer out = {0};
    double height;
    if (kind == 0) tarn__chart_lines(&out, &chart, lines, MODELS, 0, NAN, NAN);
    if (kind == 1) tarn__chart_bars(&out, &chart, bars, MODELS);
    if (kind == 2) tarn__chart_points(&out, &chart, points, MODELS);
    assert_int_equal(out.status, TARN_STATUS_OK);
    assert_int_equal(sscanf(strstr(out.data, "viewBox=\"0 0 700 "), "viewBox=\"0 0 700 %lf", &height), 1);
    assert_null(strstr(out.data, "\xE2\x80\xA6"));  // nothing is cut
    const size_t count = read_texts(out.data, texts, 400);
    assert_true(count > 4 * MODELS && count < 400);
    assert_non_null(strstr(out.data, "Data data/multi30k/train; seeds 1 to 3"));
    for (size_t i = 0; i < count; i++) {
      assert_true(texts[i].x >= 0 && texts[i].y - texts[i].size >= 0 && texts[i].y + 4 <= height);
      for (size_t k = 0; k < i; k++) {
        if (texts[i].x != texts[k].x) continue;
        const double apart = fabs(texts[i].y - texts[k].y);
        if (apart < 12) print_error("%s / %s\n", texts[i].text, texts[k].text);
        assert_true(apart >= 12);
      }
    }
    tarn__buffer_close(&out);
  }
}

static void text_from_outside_is_escaped(void **state) {
  (void)state;
  tarn__buffer out = {0};
  tarn__markup_xml(&out, "<a b=\"c\">&\x01\xFF\xC3\xA9");
  assert_string_equal(out.data, "&lt;a b=&quot;c&quot;&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xA9");
  tarn__buffer_reset(&out);
  tarn__markup_csv(&out, "a,\"b\"");
  assert_string_equal(out.data, "\"a,\"\"b\"\"\"");
  tarn__buffer_reset(&out);
  tarn__markup_latex(&out, "50_% \xC2\xB1 \\x{1}");
  assert_string_equal(out.data, "50\\_\\% $\\pm$ \\textbackslash{}x\\{1\\}");
  tarn__buffer_reset(&out);
  tarn__markup_latex(&out, "a--b --- ?` \"|\"");
  assert_string_equal(out.data, "a-{}-{}b -{}-{}- ?{}`{} \\textquotedblright{}\\textbar{}\\textquotedblright{}");
  tarn__buffer_reset(&out);
  tarn__markup_markdown(&out, "a|b*\nc &lt; ~~$1$");
  assert_string_equal(out.data, "a\\|b\\* c \\&lt; \\~\\~\\$1\\$");
  tarn__buffer_reset(&out);
  tarn__markup_file_name(&out, "../Model 1.svg");
  assert_string_equal(out.data, "-.-Model-1.svg");
  tarn__buffer_close(&out);
}

static void charts_without_data_are_pictures(void **state) {
  (void)state;
  tarn__buffer out = {0};
  tarn__chart chart = {
      .head = {.id = "empty", .title = "t", .description = "d"}, .x_label = "x", .y_label = "y", .foot = NULL};
  tarn__chart_lines(&out, &chart, NULL, 0, 0, NAN, NAN);
  tarn__chart_bars(&out, &chart, NULL, 0);
  tarn__chart_points(&out, &chart, NULL, 0);
  assert_int_equal(out.status, TARN_STATUS_OK);
  assert_null(strstr(out.data, "nan"));
  assert_null(strstr(out.data, "inf"));
  double x = 0, y = 3;
  tarn__chart_line line = {.label = {.name = "one"}, .x = &x, .y = &y, .count = 1};
  tarn__buffer_reset(&out);
  tarn__chart_lines(&out, &chart, &line, 1, 0, NAN, NAN);
  assert_int_equal(out.status, TARN_STATUS_OK);
  const char *label = strstr(out.data, "<circle");
  assert_non_null(label);
  assert_non_null(strstr(label + 1, "<circle"));  // besides the label's: the marker of the only point
  assert_null(strstr(out.data, "nan"));
  tarn__buffer_close(&out);
}

// Most of the picture is labels, so that its text grows while they are written, too.
static void charts_without_memory_fail(void **state) {
  (void)state;
  enum { LINES = 40 };
  static char name[500];
  tarn__chart chart = {
      .head = {.id = "full", .title = "t", .description = "d"}, .x_label = "x", .y_label = "y", .foot = NULL};
  double x[] = {0, 1}, y[] = {3, 4};
  tarn__chart_line lines[LINES];
  memset(name, 'n', sizeof name - 1);
  for (int i = 0; i < LINES; i++) lines[i] = (tarn__chart_line){.label = {.name = name}, .x = x, .y = y, .count = 2};
  tarn__buffer whole = {0};
  tarn__chart_lines(&whole, &chart, lines, LINES, 0, NAN, NAN);
  assert_int_equal(whole.status, TARN_STATUS_OK);
  int failures = 0;
  for (uint64_t n = 1;; n++) {
    tarn__buffer out = {0};
    tarn__memory_fail_after(n);
    tarn__chart_lines(&out, &chart, lines, LINES, 0, NAN, NAN);
    tarn__memory_fail_after(0);
    const bool done = out.status == TARN_STATUS_OK;
    if (done) assert_int_equal(out.used, whole.used);
    if (!done) assert_int_equal(out.status, TARN_STATUS_MEMORY);
    tarn__buffer_close(&out);
    if (done) break;
    failures++;
  }
  assert_true(failures > 5);
  tarn__buffer_close(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(axes_of_powers),
      cmocka_unit_test(ticks_are_round_and_few),
      cmocka_unit_test(numbers_have_the_decimals_of_their_step),
      cmocka_unit_test(labels_keep_their_distance),
      cmocka_unit_test(text_is_broken_into_lines),
      cmocka_unit_test(labels_of_points_do_not_overlap),
      cmocka_unit_test(long_legends_are_whole),
      cmocka_unit_test(text_from_outside_is_escaped),
      cmocka_unit_test(charts_without_data_are_pictures),
      cmocka_unit_test(charts_without_memory_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

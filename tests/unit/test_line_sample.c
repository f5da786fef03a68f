// Samples of the lines of a text: all of one that fits, in order; of others as many as fit, from the whole of the text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "text/line_sample.h"

enum { LINES = 20000 };

static void put_all(tarn__line_sample *sample, size_t room) {
  char line[32];
  tarn__line_sample_open(sample, room);
  for (int i = 0; i < LINES; i++) {
    const int length = snprintf(line, sizeof line, "%d %.*s", i, i % 13, "abcdefghijklm");
    assert_int_equal(tarn__line_sample_put(sample, line, (size_t)length), TARN_STATUS_OK);
  }
  assert_int_equal(sample->given, LINES);
}

// The number of the next line, which must be what it was; -1: there is none.
static int take(tarn__line_sample *sample) {
  char expected[32], copy[32] = "";
  const char *text;
  size_t length;
  int number;
  tarn__line_sample_take(sample, &text, &length);
  if (!text) return -1;
  assert_true(length < sizeof copy);
  memcpy(copy, text, length);
  assert_int_equal(sscanf(copy, "%d", &number), 1);
  snprintf(expected, sizeof expected, "%d %.*s", number, number % 13, "abcdefghijklm");
  assert_string_equal(copy, expected);
  return number;
}

static void test_a_text_that_fits(void **state) {
  (void)state;
  tarn__line_sample sample;
  put_all(&sample, 1 << 24);
  for (int i = 0; i < LINES; i++) assert_int_equal(take(&sample), i);
  assert_int_equal(take(&sample), -1);
  tarn__line_sample_close(&sample);
}

static void test_a_text_that_does_not(void **state) {
  (void)state;
  enum { ROOM = 60000, TENTHS = 10 };
  tarn__line_sample sample, again;
  int last = -1, tenth[TENTHS] = {0};
  size_t bytes = 0;
  put_all(&sample, ROOM);
  put_all(&again, ROOM);
  const int64_t kept = sample.kept;
  for (int64_t i = 0; i < kept; i++) {
    const int number = take(&sample);
    assert_int_equal(take(&again), number);  // equal texts give equal samples
    assert_true(number > last);
    last = number;
    bytes += 32 + 6 + (size_t)(number % 13);
    tenth[number / (LINES / TENTHS)]++;
  }
  assert_int_equal(take(&sample), -1);
  // The room is used: a quarter of the lines went when it was full the last time. (6: most lines have five digits.)
  assert_true(bytes > ROOM * 7 / 10 && bytes < ROOM * 11 / 10);
  // Each tenth of the text has its tenth of the sample, give or take five standard deviations.
  for (int t = 0; t < TENTHS; t++) {
    const double mean = (double)kept / TENTHS, off = tenth[t] - mean;
    assert_true(off * off < 25 * mean);
  }
  tarn__line_sample_close(&sample);
  tarn__line_sample_close(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_text_that_fits),
                                     cmocka_unit_test(test_a_text_that_does_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

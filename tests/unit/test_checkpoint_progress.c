// The progress of a training, which its last checkpoint holds: numbers that it cannot have are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "store/progress.h"

// A progress with another value in place of a field's.
static tarn_status read_progress(const char *field, const char *value) {
  tarn__progress progress = {.update = 3, .seconds = 2.5, .scored = {4}, .log = {5, 0xabc}};
  char *text;
  char changed[2048];
  char key[64];
  assert_int_equal(tarn__progress_write(&text, &progress), TARN_STATUS_OK);
  snprintf(key, sizeof key, "\"%s\":", field);
  const char *at = strstr(text, key);
  assert_non_null(at);
  at += strlen(key);
  snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, value, at + strcspn(at, ",}"));
  free(text);
  return tarn__progress_read(&progress, changed, "file");
}

// Training counts on from these numbers.
static void refuses_impossible_progress(void **state) {
  (void)state;
  static const char *const fields[] = {"update", "batches", "epoch", "best_update", "source_tokens", "norm_count"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    assert_int_equal(read_progress(fields[i], "9223372036854775807"), TARN_STATUS_DATA);
    assert_non_null(strstr(tarn_error_message(), fields[i]));
    assert_non_null(strstr(tarn_error_message(), "file: "));
    assert_int_equal(read_progress(fields[i], "-1"), TARN_STATUS_DATA);
    assert_int_equal(read_progress(fields[i], "1.5"), TARN_STATUS_DATA);
  }
  assert_int_equal(read_progress("update", "9007199254740992"), TARN_STATUS_OK);
  assert_int_equal(read_progress("update", "9007199254740993"), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "2^53"));
  // A clock that went back wrote these, and nothing depends on them: they are read as 0.
  assert_int_equal(read_progress("seconds", "-1e9"), TARN_STATUS_OK);
  assert_int_equal(read_progress("window_seconds", "-0.5"), TARN_STATUS_OK);
  assert_int_equal(read_progress("seconds", "1e999"), TARN_STATUS_DATA);
  assert_int_equal(read_progress("best", "-1.5"), TARN_STATUS_OK);
  assert_int_equal(read_progress("bytes", "6"), TARN_STATUS_OK);
  assert_int_equal(read_progress("bytes", "-1"), TARN_STATUS_DATA);
  assert_int_equal(read_progress("bytes", "\"5\""), TARN_STATUS_DATA);
  assert_int_equal(read_progress("hash", "\"0000000000000abc\""), TARN_STATUS_OK);
  assert_int_equal(read_progress("hash", "\"abc\""), TARN_STATUS_DATA);
  assert_int_equal(read_progress("hash", "\"0000000000000abX\""), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "file: the length and hash of the log are damaged"));
  assert_int_equal(read_progress("log", "1,\"x\":{\"a\":2"), TARN_STATUS_DATA);
  static const char *const scored[] = {"4", "\"4\"", "null", "{}", "[-1]", "[\"4\"]"};
  assert_int_equal(read_progress("scored", "[5]"), TARN_STATUS_OK);
  for (size_t i = 0; i < sizeof scored / sizeof *scored; i++)
    assert_int_equal(read_progress("scored", scored[i]), TARN_STATUS_DATA);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refuses_impossible_progress)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

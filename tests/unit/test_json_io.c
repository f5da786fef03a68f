// JSON where memory ends: each allocation of jansson fails once. Reading then fails with MEMORY, never with another
// text or a line that calls the file damaged; nothing leaks and nothing is overrun, which the sanitizers see.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_io.h"
#include "sandbox.h"

static uint64_t until_failure;  // 0: none
static long alive;

static void *take(size_t size) {
  if (until_failure > 0 && --until_failure == 0) return NULL;
  alive++;
  return malloc(size);
}

static void give_back(void *memory) {
  if (memory) alive--;
  free(memory);
}

// Words of every length up to that at which jansson's buffer grows several times.
static char *text_of_words(void) {
  enum { WORDS = 60 };
  char *text = calloc(1, WORDS * (WORDS + 40));
  strcat(text, "{");
  for (int i = 0; i < WORDS; i++) {
    char word[WORDS + 40];
    snprintf(word, sizeof word, "%s\"%d%.*s\": [%d, \"\\u00e4\"]", i ? ", " : "", i, i,
             "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", i);
    strcat(text, word);
  }
  return strcat(text, "}");
}

static void reading(void **unused) {
  (void)unused;
  char *text = text_of_words();
  json_t *whole;
  json_error_t error;
  assert_int_equal(tarn__json_parse(&whole, text, strlen(text), 0, &error), TARN_STATUS_OK);
  assert_int_equal(json_object_size(whole), 60);
  const long before = alive;
  uint64_t failures = 0;
  for (uint64_t n = 1;; n++) {
    json_t *object;
    until_failure = n;
    tarn_status status = tarn__json_parse(&object, text, strlen(text), 0, &error);
    const bool reached = until_failure == 0;
    until_failure = 0;
    if (!reached) {
      assert_int_equal(status, TARN_STATUS_OK);
      assert_true(json_equal(object, whole));
      json_decref(object);
      break;
    }
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_null(object);
    assert_non_null(strstr(tarn_error_message(), "out of memory"));
    assert_int_equal(alive, before);
    failures++;
  }
  assert_true(failures > 200);
  json_decref(whole);
  free(text);
}

static void writing(void **unused) {
  (void)unused;
  char *text = text_of_words();
  json_t *object;
  assert_int_equal(tarn__json_parse(&object, text, strlen(text), 0, NULL), TARN_STATUS_OK);
  char *whole = tarn__json_dump(object, JSON_COMPACT);
  assert_non_null(whole);
  const long before = alive;
  uint64_t failures = 0;
  for (uint64_t n = 1;; n++) {
    until_failure = n;
    char *again = tarn__json_dump(object, JSON_COMPACT);
    const bool reached = until_failure == 0;
    until_failure = 0;
    if (!reached) {
      assert_string_equal(again, whole);
      give_back(again);
      break;
    }
    assert_null(again);
    assert_int_equal(alive, before);
    failures++;
  }
  assert_true(failures > 5);
  assert_null(tarn__json_dump(NULL, JSON_COMPACT));
  give_back(whole);
  json_decref(object);
  free(text);
}

static void damaged(void **unused) {
  (void)unused;
  json_t *object;
  json_error_t error;
  assert_int_equal(tarn__json_parse(&object, "{\"a\": ", 6, 0, &error), TARN_STATUS_OK);
  assert_null(object);
  assert_true(strlen(error.text) > 0);
  assert_int_equal(tarn__json_file(&object, "nowhere.json", 0, &error), TARN_STATUS_IO);
  sandbox_write("one.json", "[1]", 3);
  assert_int_equal(tarn__json_file(&object, "one.json", 0, &error), TARN_STATUS_OK);
  assert_int_equal(json_array_size(object), 1);
  json_decref(object);
}

// An array of words for which jansson takes no memory. Returns its bytes.
static size_t write_array(char *text, size_t words) {
  for (size_t i = 0; i < words; i++) memcpy(text + 1 + 5 * i, "null,", 5);
  text[0] = '[';
  text[5 * words] = ']';
  return 5 * words + 1;
}

// Values are counted before any is parsed: nothing is taken for those of a text with too many.
static void too_many_values(void **unused) {
  (void)unused;
  const size_t most = TARN__JSON_VALUES;  // the array is one of them
  char *text = malloc(5 * most + 1);
  json_t *object;
  json_error_t error;
  const long before = alive;
  until_failure = 1;
  size_t size = write_array(text, most);
  assert_int_equal(tarn__json_parse(&object, text, size, 0, &error), TARN_STATUS_OK);
  assert_null(object);
  assert_string_equal(error.text, "more than 8388608 values");
  assert_int_equal(error.line, 1);
  assert_int_equal(error.position, 5 * (most - 1));  // the comma before the last word
  assert_int_equal(tarn__json_parse(&object, text, size, 0, NULL), TARN_STATUS_OK);
  assert_null(object);
  assert_int_equal(until_failure, 1);
  assert_int_equal(alive, before);
  until_failure = 0;
  size = write_array(text, most - 1);
  assert_int_equal(tarn__json_parse(&object, text, size, 0, &error), TARN_STATUS_OK);
  assert_int_equal(json_array_size(object), most - 1);
  json_decref(object);
  // What stands in strings is no value, and an escaped quotation mark ends none.
  size = 2 * most;
  memset(text, ',', size);
  memcpy(text, "[\"\\\"", 4);
  memcpy(text + size - 2, "\"]", 2);
  assert_int_equal(tarn__json_parse(&object, text, size, 0, &error), TARN_STATUS_OK);
  assert_int_equal(json_array_size(object), 1);
  json_decref(object);
  free(text);
}

int main(void) {
  json_set_alloc_funcs(take, give_back);  // before the library looks which functions there are
  const struct CMUnitTest tests[] = {cmocka_unit_test(reading), cmocka_unit_test(writing), cmocka_unit_test(damaged),
                                     cmocka_unit_test(too_many_values)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

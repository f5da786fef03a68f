// Messages, nearest words, hashes, threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/status.h"
#include "base/threads.h"
#include "tarn/text.h"

static tarn_status require_positive(int n) {
  TARN_REQUIRE(n > 0, USAGE, "n must be positive, not %d", n);
  return TARN_STATUS_OK;
}

static tarn_status forward(int n) {
  TARN_TRY(require_positive(n));
  return TARN_STATUS_OK;
}

static void failures_carry_one_line(void **state) {
  (void)state;
  assert_int_equal(forward(1), TARN_STATUS_OK);
  assert_int_equal(forward(-3), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "n must be positive, not -3");
  assert_int_equal(tarn__fail_prefix(TARN_STATUS_DATA, "%s:%d: ", "model.yaml", 7), TARN_STATUS_DATA);
  assert_string_equal(tarn_error_message(), "model.yaml:7: n must be positive, not -3");
  assert_int_equal(tarn__fail(TARN_STATUS_IO, "%s", "two\nlines\033[2J and \xc3\xa4"), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(), "two?lines?[2J and \xc3\xa4");
  char endless[5000];
  memset(endless, 'x', sizeof endless);
  endless[sizeof endless - 1] = '\0';
  assert_int_equal(tarn__fail(TARN_STATUS_IO, "%s", endless), TARN_STATUS_IO);
  assert_int_equal(tarn__fail_prefix(TARN_STATUS_IO, "%s", endless), TARN_STATUS_IO);
  assert_int_equal(strlen(tarn_error_message()), 1023);
}

static void codes_have_sentences(void **state) {
  (void)state;
  assert_string_equal(tarn_status_text(TARN_STATUS_OK), "success");
  for (int i = 0; i < TARN_STATUS_COUNT; i++) assert_true(strlen(tarn_status_text((tarn_status)i)) > 3);
  assert_string_equal(tarn_status_text((tarn_status)TARN_STATUS_COUNT), "unknown status");
  assert_string_equal(tarn_status_text((tarn_status)-1), "unknown status");
}

static void take_log(void *user, tarn_log_level level, const char *text) {
  (void)level;
  strcpy(user, text);
}

static void log_goes_to_the_receiver(void **state) {
  (void)state;
  char got[64] = "";
  tarn__log(TARN_LOG_WARNING, "dropped");
  tarn_log_set(take_log, got);
  tarn__log(TARN_LOG_WARNING, "%d lines", 3);
  tarn_log_set(NULL, NULL);
  tarn__log(TARN_LOG_INFO, "dropped");
  assert_string_equal(got, "3 lines");
}

static void nearest_word_is_found(void **state) {
  (void)state;
  static const char *const words[] = {"d_model", "heads", "encoder", "decoder", "ffn", "frozen"};
  static const struct {
    const char *word, *expected;
  } cases[] = {
      {"d_modle", "d_model"}, {"head", "heads"},   {"encodre", "encoder"},
      {"dec0der", "decoder"}, {"fnn", "ffn"},      {"frozn", "frozen"},
      {"heads", "heads"},     {"optimiser", NULL}, {"", NULL},
      {"zzz", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *found = tarn_text_nearest(cases[i].word, words, sizeof words / sizeof *words);
    if (cases[i].expected) {
      assert_non_null(found);
      assert_string_equal(found, cases[i].expected);
    } else {
      assert_null(found);
    }
  }
  char endless[500];
  memset(endless, 'a', sizeof endless);
  endless[sizeof endless - 1] = '\0';
  assert_null(tarn_text_nearest(endless, words, sizeof words / sizeof *words));
  assert_null(tarn_text_nearest("heads", words, 0));
}

static void hash_has_its_known_value(void **state) {
  (void)state;
  char text[TARN__HASH_TEXT];
  tarn__hash(text, "", 0);
  assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
  assert_true(tarn__hash64("", 0, 0) == 0x2d06800538d394c2ull);
  char other[TARN__HASH_TEXT];
  tarn__hash(text, "tarn", 4);
  tarn__hash(other, "tarm", 4);
  assert_int_equal(strlen(text), 32);
  assert_string_not_equal(text, other);
}

static void threads_are_set(void **state) {
  (void)state;
  assert_true(tarn__threads() >= 1);
  tarn__threads_set(2);
  assert_int_equal(tarn__threads(), 2);
  tarn__threads_set(0);
  assert_true(tarn__threads() >= 1);
}

static void whole_numbers_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t value;
  } whole[] = {{"0", 0},
               {"1000", 1000},
               {"+7", 7},
               {"-12", -12},
               {"007", 7},
               {"1e3", 1000},
               {"1E+3", 1000},
               {"1.5e3", 1500},
               {"-2.50e2", -250},
               {".5e1", 5},
               {"20e-1", 2},
               {"1.20e1", 12},
               {"0e-5", 0},
               {"9e18", 9000000000000000000},
               {"9223372036854775807", INT64_MAX},
               {"-9223372036854775808", INT64_MIN},
               {"9223372036854775808", INT64_MAX},
               {"1e400", INT64_MAX},
               {"-1e99999999999", INT64_MIN},
               {"99999999999999999999999", INT64_MAX}};
  static const char *const other[] = {"",    "-",  "e3", "1e",   "1e+",  "1.5e0", "2.0", "2.",    "15e-1", "1.25e1",
                                      "0x7", " 7", "7 ", "1e3x", "1e3.", "--7",   "inf", "1_000", "1,0",   "1e 3"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
    int64_t value = 99;
    if (!tarn_text_integer(&value, whole[i].text) || value != whole[i].value) print_error("%s\n", whole[i].text);
    assert_int_equal(value, whole[i].value);
  }
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    int64_t value = 99;
    if (tarn_text_integer(&value, other[i])) print_error("%s\n", other[i]);
    assert_int_equal(value, 99);
  }
}

static void check_processor(const char *list, const char *expected) {
  char name[TARN__PROCESSOR_TEXT];
  FILE *file = fmemopen((void *)(uintptr_t)list, strlen(list), "r");
  assert_non_null(file);
  tarn__processor_in(name, file);
  fclose(file);
  assert_string_equal(name, expected);
}

static void processors_have_names(void **state) {
  (void)state;
  check_processor("processor\t: 0\nmodel name\t:  Intel(R)  Xeon(R) \n", "Intel(R) Xeon(R)");
  check_processor("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", "Neoverse-V2");
  check_processor("CPU implementer\t: 0x61\nCPU part\t: 0x022\n", "ARM processor 0x61 0x22");
  check_processor("processor\t: 0\n", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failures_carry_one_line),  cmocka_unit_test(codes_have_sentences),
      cmocka_unit_test(log_goes_to_the_receiver), cmocka_unit_test(nearest_word_is_found),
      cmocka_unit_test(hash_has_its_known_value), cmocka_unit_test(threads_are_set),
      cmocka_unit_test(whole_numbers_are_read),   cmocka_unit_test(processors_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

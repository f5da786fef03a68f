// Sentence splitting: cases by hand in both languages, files, and text that is made to hurt.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "sandbox.h"
#include "tarn/text.h"
#include "text/sentences.h"

// Splits the text of a case, in which | stands where a sentence is to end, and compares.
static void check(const char *language, const char *expected) {
  tarn__sentences s = {0};
  char text[1024];
  char joined[1024] = "";
  size_t length = 0;
  for (const char *at = expected; *at; at++) text[length++] = *at == '|' ? ' ' : *at;
  assert_true(length < sizeof text);
  assert_int_equal(tarn__sentence_language_find(&s.language, language), TARN_STATUS_OK);
  assert_int_equal(tarn__sentences_split(&s, text, length), TARN_STATUS_OK);
  for (size_t i = 0; i < s.count; i++) {
    if (i) strcat(joined, "|");
    strncat(joined, text + s.items[i].start, s.items[i].end - s.items[i].start);
  }
  assert_string_equal(joined, expected);
  tarn__sentences_close(&s);
}

static void test_english(void **state) {
  (void)state;
  static const char *const cases[] = {
      "Mr. Smith went to Washington, D.C.|He met J. R. Tolkien at 5 p.m. on Jan. 5.|Then he left.",
      "President Carlos P. Garcia spoke.|So did I.|The U.S. Army came.|It was in the U.S.|The end.",
      "\"Why?\" I asked.|\"Why?\" he asked.|\"Why?\" John asked.|\"Stop!\" Mr. Hill cried.",
      "\"No.\"|Smith smiled.|\"Stop!\"|He left.|“Yes.”|She said, “Go.”|‘Now!’",
      "It cost 3.5 dollars...|Then it ended!|See Fig. 3 and No. 5, vol. II.|No.|I will not.|In 1990.",
      "In 1990.|After that, 12 came.",
      "The end.[12]|Next one (e.g. this one).|(He left.|She stayed.)|What?!|Really (!) good.",
      "Visit www.example.com or a.b.c?d=e now.|It ran at 5:30 a.m. on Monday.|He was born c. 1500.",
      "Smith et al. Report 5 says so.|He works at Foo Inc. and lives in St. Louis.|John Smith Jr.|He did.",
      "1. First.|2. Second thing.|(A) Third.|IV. Fourth.",
      "Wait . . .|He left.|Well… maybe.|\"I...\" she began.",
      "that looks nice .|mm .|oh ? good .",
      "`` I hope so , '' said Peter moodily .|He said it . ''|` There is a way . ' ''|\" Yes . \"|She left .",
      "How are you?|- Fine.|- Good, thanks.|He came - I think - late.",
      "No one knows.|Bedroom vol. 3 is out.|It weighs 32.5 kg.|Three came.",
      "$5 is enough.|#1 is it.|100 people came.|É is a letter.|日本語。",
      "Hello",
      "...",
      "A.",
      "!",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check("en", cases[i]);
}

static void test_german(void **state) {
  (void)state;
  static const char *const cases[] = {
      "Am 3. Oktober 1990 kam Dr. Müller z. B. nach Berlin.|Im 19. Jahrhundert war das u.a. nicht so.",
      "„Warum?“, fragte er.|„Nein!“|Er ging.|»Gut.«|Sie blieb.|„Halt!“ rief Peter.|„Halt!“ Peter rief es.",
      "Das waren 12.|Der Rest kam bzw. blieb.|Ludwig XIV. Bourbon war König.|Er kaufte Äpfel, Birnen usw.",
      "Er kam usw.|Dann ging er.",
      "Nr. 5 lebt.|Er hat ca. 50 Mio. Euro.|Vgl. Abb. 3 und S. 12.|Das war im Jahr 1990.|Peter kam.",
      "Das gilt i. d. R. Montags nicht.|Herr A. Müller kam.|Er wohnt in der Schweiz.|Frankreich ist nah.",
      "Er wartete …|Peter kam nicht.|Am 24. 12. 2020 war Heiligabend.|Ach!|Österreich gewinnt.",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check("de", cases[i]);
}

static void expect_file(const char *text, size_t length, const tarn_sentences_options *options, const char *expected,
                        const tarn_sentences_result *counts) {
  const char *files[] = {"in", "in"};
  tarn_sentences_result result;
  char *bytes;
  size_t size;
  sandbox_write("in", text, length);
  assert_int_equal(tarn_sentences_write(&result, "out", files, 1, options), TARN_STATUS_OK);
  assert_int_equal(tarn__file_read("out", &bytes, &size), TARN_STATUS_OK);
  assert_string_equal(bytes, expected);
  tarn__free(bytes);
  assert_int_equal(result.lines, counts->lines);
  assert_int_equal(result.paragraphs, counts->paragraphs);
  assert_int_equal(result.sentences, counts->sentences);
  assert_int_equal(result.replaced, counts->replaced);
  assert_int_equal(tarn_sentences_write(&result, "out", files, 2, options), TARN_STATUS_OK);
  assert_int_equal(result.sentences, 2 * counts->sentences);
}

static void test_files(void **state) {
  (void)state;
  static const char text[] = "\xEF\xBB\xBFOne two. Three\r\nfour. Five.\n\n \t \n  Six\xFF.";
  tarn_sentences_options options;
  tarn_sentences_default(&options);
  assert_string_equal(options.language, "en");
  expect_file(text, sizeof text - 1, &options, "One two.\nThree\nfour.\nFive.\nSix\xEF\xBF\xBD.\n",
              &(tarn_sentences_result){5, 3, 5, 1});
  options.wrapped = true;
  expect_file(text, sizeof text - 1, &options, "One two.\nThree four.\nFive.\nSix\xEF\xBF\xBD.\n",
              &(tarn_sentences_result){5, 2, 4, 1});
  expect_file("", 0, &options, "", &(tarn_sentences_result){0});
  sandbox_write("in", text, sizeof text - 1);
  const char *files[] = {"in", "missing"};
  tarn_sentences_result result;
  options.strict = true;
  assert_int_equal(tarn_sentences_write(&result, "never", files, 1, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "in:5: invalid UTF-8"));
  options.strict = false;
  assert_int_equal(tarn_sentences_write(&result, "never", files, 2, &options), TARN_STATUS_IO);
  assert_int_equal(tarn_sentences_write(&result, "never", files, 0, &options), TARN_STATUS_USAGE);
  options.language = "fr";
  assert_int_equal(tarn_sentences_write(&result, "never", files, 1, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "en and de, not \"fr\""));
  assert_false(tarn__file_exists("never"));
}

// Sentences lie one after the other in the text, and nothing but white space lies between them.
static void test_random(void **state) {
  (void)state;
  static const char *const parts[] = {".", ".",  "!", "?",  " ",  " ",  "\"", "'",  "“",    "”", "(",  ")", "[3]", "A",
                                      "b", "No", "z", "12", "Mr", "\t", "–",  "- ", "\xFF", "…", "。", "I", "The", "`"};
  enum { PARTS = sizeof parts / sizeof *parts };
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  tarn__sentences s = {0};
  for (int k = 0; k < 20000; k++) {
    char text[256] = "";
    size_t count = (size_t)tarn__random_below(&random, 40);
    for (size_t i = 0; i < count; i++) strcat(text, parts[tarn__random_below(&random, PARTS)]);
    assert_int_equal(tarn__sentence_language_find(&s.language, k % 2 ? "en" : "de"), TARN_STATUS_OK);
    assert_int_equal(tarn__sentences_split(&s, text, strlen(text)), TARN_STATUS_OK);
    size_t at = 0;
    for (size_t i = 0; i <= s.count; i++) {
      size_t start = i < s.count ? s.items[i].start : strlen(text);
      for (; at < start; at++) assert_true(text[at] == ' ' || text[at] == '\t');
      if (i == s.count) break;
      assert_true(s.items[i].end > start && s.items[i].end <= strlen(text));
      at = s.items[i].end;
    }
  }
  tarn__sentences_close(&s);
}

// Long runs of stops, quotes and blanks take a time that grows with their length only.
static void test_long(void **state) {
  (void)state;
  enum { LONG = 300000 };
  static const char *const units[] = {". ", ".", "\" ", ".\" ", "a. ", "( ", ".[1", "- ", "I.\"John "};
  char *text = malloc(LONG + 16);
  assert_non_null(text);
  tarn__sentences s = {0};
  assert_int_equal(tarn__sentence_language_find(&s.language, "en"), TARN_STATUS_OK);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t size = strlen(units[i]);
    size_t length = 0;
    for (; length < LONG; length += size) memcpy(text + length, units[i], size);
    assert_int_equal(tarn__sentences_split(&s, text, length), TARN_STATUS_OK);
    assert_true(s.count > 0);
  }
  free(text);
  tarn__sentences_close(&s);
}

static void test_memory_failures(void **state) {
  (void)state;
  const char *files[] = {"in"};
  tarn_sentences_options options;
  tarn_sentences_default(&options);
  options.wrapped = true;
  sandbox_write("in", "One. Two.\nThree.\n", 17);
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn_sentences_result result;
    tarn__memory_fail_after(n);
    tarn_status status = tarn_sentences_write(&result, "out", files, 1, &options);
    tarn__memory_fail_after(0);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_english), cmocka_unit_test(test_german), cmocka_unit_test(test_files),
      cmocka_unit_test(test_random),  cmocka_unit_test(test_long),   cmocka_unit_test(test_memory_failures),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

// Long lines: where they are cut, that ids do not change by it, and that no text is lost in the training of a
// vocabulary.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox.h"
#include "tarn/vocab.h"
#include "text/cut.h"
#include "text/utf8.h"

static void expect_cut(const char *text, size_t most, size_t end, size_t next, bool within) {
  size_t got_next;
  bool got_within;
  assert_int_equal(tarn__cut(&got_next, &got_within, text, strlen(text), most), end);
  assert_int_equal(got_next, next);
  assert_int_equal(got_within, within);
}

static void test_places(void **state) {
  (void)state;
  expect_cut("ab cd", 5, 5, 5, false);
  expect_cut("ab cd ef", 5, 5, 6, false);
  expect_cut("ab cd ef", 4, 2, 3, false);
  expect_cut("ab  cd", 4, 3, 4, false);  // one blank is left out, not two
  expect_cut(
      "ab\xE3\x80\x80"
      "cdef",
      6, 2, 2, false);  // U+3000 stays
  expect_cut(
      "ab \xCC\x81"
      "cdef",
      6, 6, 6, true);  // a blank with an accent on it is none
  expect_cut("abcdefgh", 5, 5, 5, true);
  expect_cut(
      "abc\xC3\xA4"
      "efgh",
      4, 3, 3, true);  // never within a character
  expect_cut(
      "abca\xCC\x81"
      "efgh",
      4, 3, 3, true);                                                     // never before a mark on one
  expect_cut("\xCC\x81\xCC\x81\xCC\x81\xCC\x81\xCC\x81", 5, 4, 4, true);  // but for nothing else
  expect_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 5, 5, 5, true);          // bytes that are no UTF-8
}

// Any text falls into parts that are all of it but the blanks at which it was cut.
static void test_parts_are_the_text(void **state) {
  (void)state;
  static const char *const pieces[] = {"a", " ", "ä", "日", "\xCC\x81", "\t", "\xFF", "  ", "🎉", "\xE3\x80\x80"};
  uint32_t random = 7;
  for (int round = 0; round < 2000; round++) {
    char text[256];
    size_t length = 0;
    const int count = round % 40;
    for (int i = 0; i < count; i++) {
      random = random * 1664525 + 1013904223;
      const char *piece = pieces[(random >> 16) % 10];
      memcpy(text + length, piece, strlen(piece));
      length += strlen(piece);
    }
    const size_t most = 4 + (size_t)round % 13;
    for (size_t at = 0; at < length;) {
      size_t next;
      bool within;
      const size_t part = tarn__cut(&next, &within, text + at, length - at, most);
      assert_true(part <= most && next > 0 && next >= part && next <= part + 1);
      if (next > part) assert_int_equal(text[at + part], ' ');
      at += next;
    }
  }
}

static const char *const WORDS[] = {"Das", "Haus", "ﬁndet", "Mädchen,", "½", "und", "Straße.", "①", "nicht", "Ｖögel"};
enum { LONG = 3 * TARN__CUT_LONGEST };

// A line of words that differ from run to run, with single and double blanks, and a newline.
static size_t make_line(char *line, uint32_t seed) {
  size_t length = 0;
  while (length < LONG) {
    seed = seed * 1664525 + 1013904223;
    const char *word = WORDS[(seed >> 16) % 10];
    memcpy(line + length, word, strlen(word));
    length += strlen(word);
    line[length++] = ' ';
    if ((seed >> 24) % 16 == 0) line[length++] = ' ';
  }
  line[length - 1] = '\n';
  return length;
}

static void train(const char *output, const char *file, tarn_vocab_type type, tarn_vocab_report *report) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = type;
  options.size = type == TARN_VOCAB_TYPE_BPE ? 50 : 35;
  options.report = report;
  tarn_status status = tarn_vocab_train(output, &file, 1, &options);
  if (status) print_error("%s\n", tarn_error_message());
  assert_int_equal(status, TARN_STATUS_OK);
}

// The ids of a long line are those of its words one by one, whatever the kind.
static void test_ids_of_a_long_line(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM};
  char *line = malloc(LONG + 64);
  assert_non_null(line);
  for (int i = 0; i < 2; i++) {
    tarn_vocab *vocab;
    tarn_vocab_report report;
    tarn_vocab_ids whole = {0}, word = {0};
    const size_t length = make_line(line, 3) - 1;
    sandbox_write("long", line, length + 1);
    train("v", "long", types[i], &report);
    assert_int_equal(report.lines, 1);
    assert_int_equal(report.long_lines, 1);
    assert_int_equal(report.given, 4);
    assert_int_equal(report.used_bytes, report.bytes);
    assert_int_equal(report.bytes, length);
    assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_encode(vocab, &whole, line, length), TARN_STATUS_OK);
    assert_int_equal(whole.parts, 4);
    assert_int_equal(whole.broken, 0);
    size_t at = 0;
    line[length] = '\0';
    for (char *text = strtok(line, " "); text; text = strtok(NULL, " ")) {
      assert_int_equal(tarn_vocab_encode(vocab, &word, text, strlen(text)), TARN_STATUS_OK);
      assert_int_equal(word.parts, 1);
      assert_true(at + word.count <= whole.count);
      assert_memory_equal(whole.data + at, word.data, word.count * sizeof *word.data);
      at += word.count;
    }
    assert_int_equal(at, whole.count);
    tarn_vocab_ids_close(&whole);
    tarn_vocab_ids_close(&word);
    tarn_vocab_close(&vocab);
  }
  free(line);
}

// Text in one long line gives the vocabulary of the same text in short lines.
static void test_long_line_trains_as_short_ones(void **state) {
  (void)state;
  char *line = malloc(LONG + 64);
  assert_non_null(line);
  const size_t length = make_line(line, 5);
  sandbox_write("long", line, length);
  for (size_t i = 1000; i < length; i++)
    if (line[i] == ' ' && (i / 1000) != (i - 1) / 1000) line[i] = '\n';
  sandbox_write("short", line, length);
  train("long.model", "long", TARN_VOCAB_TYPE_BPE, NULL);
  train("short.model", "short", TARN_VOCAB_TYPE_BPE, NULL);
  tarn_vocab *a, *b;
  assert_int_equal(tarn_vocab_open(&a, "long.model"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&b, "short.model"), TARN_STATUS_OK);
  for (int32_t i = 0; i < tarn_vocab_size(a); i++) assert_string_equal(tarn_vocab_piece(a, i), tarn_vocab_piece(b, i));
  tarn_vocab_close(&a);
  tarn_vocab_close(&b);
  free(line);
}

// A word that is longer than a part is split, between characters, and said.
static void test_split_words(void **state) {
  (void)state;
  enum { COUNT = 50000 };
  char *line = malloc(3 * COUNT + 1);
  assert_non_null(line);
  for (int i = 0; i < COUNT; i++) memcpy(line + 3 * i, i % 3 ? "日" : "本", 3);
  line[3 * COUNT] = '\n';
  sandbox_write("word", line, 3 * COUNT + 1);
  tarn_vocab_report report;
  tarn_vocab *vocab;
  tarn_vocab_ids ids = {0};
  tarn_vocab_options options;
  const char *file = "word";
  tarn_vocab_default(&options);
  options.size = 8;
  options.report = &report;
  assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_OK);
  assert_int_equal(report.split_words, 9);
  assert_int_equal(report.used_bytes, 3 * COUNT);
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_encode(vocab, &ids, line, 3 * COUNT), TARN_STATUS_OK);
  assert_int_equal(ids.parts, 3);
  assert_int_equal(ids.broken, 2);
  for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.data[i], tarn_vocab_unk(vocab));
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&vocab);
  free(line);
}

// SentencePiece itself would skip both lines with U+2585.
static void test_reserved_character(void **state) {
  (void)state;
  static const char text[] = "aaa bbb ▅ ccc\n▅▅ ddd eee\nfff ggg hhh\n▅\n";
  const char *file = "bars";
  tarn_vocab_options options;
  tarn_vocab_report report;
  tarn_vocab_default(&options);
  options.size = 14;
  options.report = &report;
  sandbox_write(file, text, sizeof text - 1);
  assert_int_equal(tarn_vocab_train("none", &file, 1, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(),
                         "bars: 27.9 % of the text cannot be used (12 of 43 bytes: 0 are no UTF-8, "
                         "0 in lines without a visible character, 12 of U+2585"));
  assert_non_null(strstr(tarn_error_message(), "--allow-loss"));
  assert_false(tarn__file_exists("none"));
  options.allow_loss = true;
  assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_OK);
  assert_int_equal(report.reserved, 4);
  assert_int_equal(report.used_bytes, 31);
  assert_int_equal(report.given, 3);
  tarn_vocab *vocab;
  tarn_vocab_ids ids = {0};
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_encode(vocab, &ids, "abcdefgh", 8), TARN_STATUS_OK);
  for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.data[i], tarn_vocab_unk(vocab));
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&vocab);
}

// A text in Latin-1 loses its letters.
static void test_invalid_bytes_are_lost(void **state) {
  (void)state;
  const char *file = "latin1";
  tarn_vocab_options options;
  tarn_vocab_report report;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_WHITESPACE;
  options.report = &report;
  sandbox_write(file, "f\xFCr die T\xFCr\n   \n\n", 17);
  assert_int_equal(tarn_vocab_train("none", &file, 1, &options), TARN_STATUS_DATA);
  assert_non_null(
      strstr(tarn_error_message(), "latin1: 18.2 % of the text cannot be used (2 of 11 bytes: 2 are no UTF-8"));
  options.allow_loss = true;
  assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_OK);
  assert_int_equal(report.lines, 3);
  assert_int_equal(report.used_bytes, 9);
  assert_int_equal(report.replaced, 1);
}

// The size that the message names works, and one more does not.
static void test_size_that_works(void **state) {
  (void)state;
  const char *file = "words";
  sandbox_write(file, "der Mann sieht das Haus\ndie Frau sucht den Garten\ndas Kind findet das Buch\n", 74);
  for (int type = 0; type < 2; type++) {
    tarn_vocab_options options;
    tarn_vocab_default(&options);
    options.type = type ? TARN_VOCAB_TYPE_UNIGRAM : TARN_VOCAB_TYPE_BPE;
    options.size = 4000;
    assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_DATA);
    const char *found = strstr(tarn_error_message(), "words: --size 4000 is too high");
    assert_non_null(found);
    found = strstr(found, "works is --size ");
    assert_non_null(found);
    options.size = atoi(found + strlen("works is --size "));
    assert_true(options.size > 20 && options.size < 200);
    assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_OK);
    options.size++;
    assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_DATA);
    options.size = 6;
    assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_DATA);
    found = strstr(tarn_error_message(), "need --size ");
    assert_non_null(found);
    options.size = atoi(found + strlen("need --size "));
    assert_true(options.size > 6 && options.size < 40);
    assert_int_equal(tarn_vocab_train("v", &file, 1, &options), TARN_STATUS_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_parts_are_the_text),
      cmocka_unit_test(test_ids_of_a_long_line),
      cmocka_unit_test(test_long_line_trains_as_short_ones),
      cmocka_unit_test(test_split_words),
      cmocka_unit_test(test_reserved_character),
      cmocka_unit_test(test_invalid_bytes_are_lost),
      cmocka_unit_test(test_size_that_works),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

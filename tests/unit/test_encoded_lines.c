// Lines read and encoded by several threads: the tokens of each line, in order; lines that are too long; parts of them.
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
#include "base/random.h"
#include "data/encoded_lines.h"
#include "sandbox.h"

enum { AHEAD = 1 << 20 };  // bytes

static const char BYTES[] = "tarn-vocab byte 1\n";

static tarn_vocab *byte_vocab(void) {
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open_memory(&vocab, BYTES, sizeof BYTES - 1), TARN_STATUS_OK);
  return vocab;
}

// Lines of 0 .. 99 letters, many blocks of them; some with what is no ASCII.
static char *make_text(size_t *size, int64_t lines) {
  char *text = malloc((size_t)lines * 104);
  tarn__random random;
  tarn__random_init(&random, 7, 1);
  assert_non_null(text);
  *size = 0;
  for (int64_t i = 0; i < lines; i++) {
    const uint64_t length = tarn__random_below(&random, 100);
    for (uint64_t k = 0; k < length; k++) text[(*size)++] = (char)(k % 7 == 6 ? ' ' : 'a' + (int)(k % 26));
    if (i % 11 == 0) {
      memcpy(text + *size, "\xC3\xA4", 2);
      *size += 2;
    }
    text[(*size)++] = '\n';
  }
  return text;
}

static void test_lines_are_those_of_the_file(void **state) {
  (void)state;
  enum { LINES = 100000 };
  size_t size;
  char *text = make_text(&size, LINES);
  tarn_vocab *vocab = byte_vocab();
  assert_int_equal(tarn__file_write("text", text, size), TARN_STATUS_OK);
  // One block ahead, a few of them, and as many as there can be.
  const size_t memory[] = {0, 1 << 24, SIZE_MAX};
  for (int round = 0; round < 9; round++) {
    tarn__encoded_lines encoded;
    tarn__encode_pool *pool;
    const char *at = text;
    assert_int_equal(tarn__encode_pool_open(&pool, round % 3 + 1), TARN_STATUS_OK);
    assert_int_equal(tarn__encoded_lines_open(&encoded, vocab, pool, memory[round / 3], "text", true), TARN_STATUS_OK);
    for (int64_t n = 1; n <= LINES; n++) {
      const tarn__encoded_line *line;
      const char *end = memchr(at, '\n', size);
      assert_int_equal(tarn__encoded_lines_next(&encoded, &line), TARN_STATUS_OK);
      assert_non_null(line);
      assert_int_equal(line->number, n);
      assert_int_equal(line->count, end - at);
      for (int64_t k = 0; k < line->count; k++) assert_int_equal(line->ids[k], 3 + (unsigned char)at[k]);
      at = end + 1;
    }
    const tarn__encoded_line *line;
    assert_int_equal(tarn__encoded_lines_next(&encoded, &line), TARN_STATUS_OK);
    assert_null(line);
    tarn__encoded_lines_close(&encoded);
    tarn__encode_pool_close(&pool);
  }
  tarn_vocab_close(&vocab);
  free(text);
}

// What comes before the line at fault is given first.
static void test_faults_come_in_their_order(void **state) {
  (void)state;
  tarn_vocab *vocab = byte_vocab();
  tarn__encoded_lines encoded;
  tarn__encode_pool *pool;
  const tarn__encoded_line *line;
  char text[] = "one\ntwo\nthr?e\nfour\n";
  text[11] = '\0';
  assert_int_equal(tarn__file_write("zero", text, sizeof text - 1), TARN_STATUS_OK);
  assert_int_equal(tarn__encode_pool_open(&pool, 2), TARN_STATUS_OK);
  assert_int_equal(tarn__encoded_lines_open(&encoded, vocab, pool, AHEAD, "zero", false), TARN_STATUS_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tarn__encoded_lines_next(&encoded, &line), TARN_STATUS_OK);
    assert_int_equal(line->count, 3);
  }
  assert_int_equal(tarn__encoded_lines_next(&encoded, &line), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "zero:3: a zero byte"));
  tarn__encoded_lines_close(&encoded);
  tarn__encode_pool_close(&pool);
  tarn_vocab_close(&vocab);
}

// Two texts that share the threads, left in the middle while blocks of them wait and are worked on.
static void test_two_texts_that_are_left(void **state) {
  (void)state;
  enum { LINES = 40000, READ = 9000 };
  size_t size;
  char *text = make_text(&size, LINES);
  tarn_vocab *vocab = byte_vocab();
  assert_int_equal(tarn__file_write("text", text, size), TARN_STATUS_OK);
  for (int round = 0; round < 5; round++) {
    tarn__encoded_lines both[2];
    tarn__encode_pool *pool;
    assert_int_equal(tarn__encode_pool_open(&pool, 3), TARN_STATUS_OK);
    for (int s = 0; s < 2; s++)
      assert_int_equal(tarn__encoded_lines_open(&both[s], vocab, pool, SIZE_MAX, "text", true), TARN_STATUS_OK);
    for (int64_t n = 1; n <= READ; n++) {
      const tarn__encoded_line *line[2];
      for (int s = 0; s < 2; s++) assert_int_equal(tarn__encoded_lines_next(&both[s], &line[s]), TARN_STATUS_OK);
      assert_int_equal(line[0]->number, n);
      assert_int_equal(line[0]->count, line[1]->count);
      if (line[0]->count > 0)
        assert_memory_equal(line[0]->ids, line[1]->ids, (size_t)line[0]->count * sizeof *line[0]->ids);
    }
    for (int s = 0; s < 2; s++) tarn__encoded_lines_close(&both[s]);
    tarn__encode_pool_close(&pool);
  }
  tarn_vocab_close(&vocab);
  free(text);
}

static void test_long_lines(void **state) {
  (void)state;
  const char text[] = "short\r\nThis line is longer than it may be, and it goes on.\nthe last";
  tarn__lines lines;
  const char *line;
  size_t length;
  assert_int_equal(tarn__file_write("long", text, sizeof text - 1), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_open(&lines, "long", false), TARN_STATUS_OK);
  lines.longest = 16;
  assert_int_equal(tarn__lines_next(&lines, &line, &length), TARN_STATUS_OK);
  assert_int_equal(length, 5);
  assert_int_equal(tarn__lines_next(&lines, &line, &length), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "long:2: this line has more than 16 bytes"));
  tarn__lines_close(&lines);
  // As parts, which together are the file, but for its line ends.
  char whole[sizeof text] = "";
  int64_t parts = 0;
  assert_int_equal(tarn__lines_open(&lines, "long", false), TARN_STATUS_OK);
  lines.longest = 16;
  lines.parts = lines.verbatim = true;
  for (bool first = true;; first = false) {
    const bool more = lines.more;
    assert_int_equal(tarn__lines_next(&lines, &line, &length), TARN_STATUS_OK);
    if (!line) break;
    assert_true(length <= 16);
    if (!first && !more) strcat(whole, "\n");
    strncat(whole, line, length);
    parts += lines.more;
  }
  assert_string_equal(whole, text);
  assert_int_equal(lines.number, 3);
  assert_true(lines.open_end);
  assert_int_equal(parts, 3);
  tarn__lines_close(&lines);
}

// However long a text without line ends is, no more of it is read than is asked for.
static void test_no_line_end(void **state) {
  (void)state;
  enum { SIZE = 1 << 22, LONGEST = 1 << 16 };
  char *text = malloc(SIZE);
  tarn__lines lines;
  const char *line;
  size_t length;
  assert_non_null(text);
  memset(text, 'x', SIZE);
  assert_int_equal(tarn__file_write("endless", text, SIZE), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_open(&lines, "endless", false), TARN_STATUS_OK);
  lines.longest = LONGEST;
  lines.parts = true;
  size_t sum = 0;
  for (;;) {
    assert_int_equal(tarn__lines_next(&lines, &line, &length), TARN_STATUS_OK);
    if (!line) break;
    assert_true(lines.capacity <= 8 * LONGEST);
    sum += length;
  }
  assert_int_equal(sum, SIZE);
  tarn__lines_close(&lines);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines_are_those_of_the_file),
                                     cmocka_unit_test(test_faults_come_in_their_order),
                                     cmocka_unit_test(test_two_texts_that_are_left), cmocka_unit_test(test_long_lines),
                                     cmocka_unit_test(test_no_line_end)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

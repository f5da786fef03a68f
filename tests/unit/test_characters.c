// Byte and character vocabularies.
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
#include "tarn/vocab.h"

static const char TEXT[] = "aab \xC3\xA4\xC3\xA4\xC3\xA4 B\n\tb\xF0\x9F\x98\x80\r\n\n";

static tarn_status train(const char *output, tarn_vocab_type type, int64_t size, int64_t minimum, bool lowercase) {
  const char *files[] = {"text"};
  const size_t count = type != TARN_VOCAB_TYPE_BYTE;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = type;
  if (count) options.size = size;
  options.minimum_count = minimum;
  options.lowercase = lowercase;
  sandbox_write("text", TEXT, sizeof TEXT - 1);
  return tarn_vocab_train(output, files, count, &options);
}

static void expect(const tarn_vocab *vocab, const char *text, const int32_t *expected, size_t count, const char *back) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text decoded = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
  assert_int_equal(ids.count, count);
  if (count) assert_memory_equal(ids.data, expected, count * sizeof *expected);
  assert_int_equal(tarn_vocab_decode(vocab, &decoded, ids.data, count), TARN_STATUS_OK);
  assert_string_equal(decoded.data, back);
  assert_int_equal(decoded.length, strlen(back));
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&decoded);
}

static void test_byte(void **state) {
  (void)state;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  assert_int_equal(tarn_vocab_train("v", NULL, 0, &options), TARN_STATUS_OK);
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 259);
  assert_int_equal(tarn_vocab_unk(vocab), 0);
  assert_int_equal(tarn_vocab_bos(vocab), 1);
  assert_int_equal(tarn_vocab_eos(vocab), 2);
  assert_string_equal(tarn_vocab_piece(vocab, 2), "</s>");
  assert_string_equal(tarn_vocab_piece(vocab, 3 + 'x'), "x");
  assert_string_equal(tarn_vocab_piece(vocab, 3 + '\n'), "<0x0A>");
  expect(vocab, "a\xC3\xA4\xFF", (const int32_t[]){100, 198, 167, 258}, 4, "a\xC3\xA4\xFF");
  expect(vocab, "", NULL, 0, "");
  tarn_vocab_text text = {0};
  assert_int_equal(tarn_vocab_decode(vocab, &text, (const int32_t[]){1, 0, 100, 2}, 4), TARN_STATUS_OK);
  assert_string_equal(text.data, "a");
  assert_int_equal(tarn_vocab_decode(vocab, &text, (const int32_t[]){259}, 1), TARN_STATUS_DATA);
  tarn_vocab_text_close(&text);
  tarn_vocab_close(&vocab);
  options.lowercase = true;
  assert_int_equal(tarn_vocab_train("w", NULL, 0, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "fold"));
  options.lowercase = false;
  options.size = 300;
  assert_int_equal(tarn_vocab_train("w", NULL, 0, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "it takes no size"));
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  assert_int_equal(tarn_vocab_train("w", (const char *const[]){"text"}, 1, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "it takes no text"));
  assert_false(tarn__file_exists("w"));
}

static void test_char(void **state) {
  (void)state;
  char *bytes;
  size_t size;
  assert_int_equal(train("v", TARN_VOCAB_TYPE_CHAR, 100, 1, false), TARN_STATUS_OK);
  assert_int_equal(tarn__file_read("v", &bytes, &size), TARN_STATUS_OK);
  assert_string_equal(
      bytes, "tarn-vocab char 1\nlowercase 0\nsize 10\nU+00E4\nU+0020\nU+0061\nU+0062\nU+0009\nU+0042\nU+1F600\n");
  tarn__free(bytes);
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 10);
  assert_int_equal(tarn_vocab_eos(vocab), 2);
  assert_string_equal(tarn_vocab_piece(vocab, 3), "\xC3\xA4");
  assert_string_equal(tarn_vocab_piece(vocab, 4), "<U+0020>");
  assert_string_equal(tarn_vocab_piece(vocab, 9), "\xF0\x9F\x98\x80");
  // One token and, decoded, one character for each character, unknown and invalid ones included.
  expect(vocab, "a \xC3\xA4zB\xE2\x82", (const int32_t[]){5, 4, 3, 0, 8, 0}, 6,
         "a \xC3\xA4\xEF\xBF\xBD"
         "B\xEF\xBF\xBD");
  expect(vocab, "", NULL, 0, "");
  tarn_vocab_close(&vocab);
  assert_int_equal(train("v", TARN_VOCAB_TYPE_CHAR, 5, 1, false), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 5);
  tarn_vocab_close(&vocab);
  assert_int_equal(train("v", TARN_VOCAB_TYPE_CHAR, 100, 2, true), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 7);
  expect(vocab,
         "\xC3\x84"
         "B",
         (const int32_t[]){4, 3}, 2,
         "\xC3\xA4"
         "b");
  tarn_vocab_close(&vocab);
  assert_int_equal(train("w", TARN_VOCAB_TYPE_CHAR, 100, 9, false), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "at least 9 times"));
}

static void test_count(void **state) {
  (void)state;
  assert_int_equal(tarn_vocab_characters("", 0), 0);
  assert_int_equal(tarn_vocab_characters("a\xC3\xA4\xF0\x9F\x98\x80\xE2\x82z\xFF\xFF", 12), 7);
}

static void test_damaged(void **state) {
  (void)state;
  static const char *const files[] = {
      "tarn-vocab byte 3\n",
      "tarn-vocab byte 1",
      "tarn-vocab byte 1\nmore\n",
      "tarn-vocab char 1\nlowercase 0\n",
      "tarn-vocab char 1\nlowercase 2\nsize 3\n",
      "tarn-vocab char 1\nlowercase 0\nsize 2\n",
      "tarn-vocab char 1\nlowercase 0\nsize 999999999\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+61\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+006a\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+D800\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+110000\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+FFFFFFFFF\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nx\n",
      "tarn-vocab char 1\nlowercase 0\nsize 5\nU+0061\nU+0061\n",
      "tarn-vocab char 1\nlowercase 0\nsize 4\nU+0061\nU+0062\n",
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    tarn_vocab *vocab;
    tarn_status status = tarn_vocab_open_memory(&vocab, files[i], strlen(files[i]));
    if (status != TARN_STATUS_DATA) print_error("opened: %s\n", files[i]);
    assert_int_equal(status, TARN_STATUS_DATA);
    assert_null(vocab);
  }
}

static void test_memory_failures(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BYTE, TARN_VOCAB_TYPE_CHAR};
  for (int i = 0; i < 2; i++) {
    size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
    for (uint64_t n = 1;; n++) {
      tarn_vocab *vocab = NULL;
      tarn_vocab_ids ids = {0};
      tarn__memory_fail_after(n);
      tarn_status status = train("v", types[i], 300, 1, false);
      if (status == TARN_STATUS_OK) status = tarn_vocab_open(&vocab, "v");
      if (status == TARN_STATUS_OK) status = tarn_vocab_encode(vocab, &ids, "ab", 2);
      tarn__memory_fail_after(0);
      tarn_vocab_ids_close(&ids);
      tarn_vocab_close(&vocab);
      assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
      if (status == TARN_STATUS_OK) break;
      assert_int_equal(status, TARN_STATUS_MEMORY);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_byte), cmocka_unit_test(test_char),
                                     cmocka_unit_test(test_count), cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_memory_failures)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

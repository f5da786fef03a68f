// GPT-2's vocabulary: its files, bad ones, and texts that are made to hurt.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "sandbox.h"
#include "tarn/vocab.h"
#include "text/gpt2_split.h"
#include "text/utf8.h"

// The 256 characters that stand for bytes, as JSON members with the ids 0 .. 255.
static void write_bytes(FILE *file) {
  int others = 0;
  for (int b = 0; b < 256; b++) {
    bool plain = (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD);
    fprintf(file, "\"\\u%04x\": %d, ", plain ? b : 256 + others, b);
    others += !plain;
  }
}

// Writes vocab.json with `more` after the bytes, and merges.txt.
static void write_files(const char *more, const char *merges) {
  FILE *file = fopen("vocab.json", "wb");
  assert_non_null(file);
  fputc('{', file);
  write_bytes(file);
  fprintf(file, "%s}", more);
  assert_int_equal(fclose(file), 0);
  sandbox_write("merges.txt", merges, strlen(merges));
}

#define GOOD "\"ab\": 257, \"<|endoftext|>\": 256, \"abc\": 258, \"\\u0120a\": 259"
#define MERGES "#version: 0.2\na b\nab c\n\xC4\xA0 a\n"

static void expect_ids(const tarn_vocab *vocab, const char *text, size_t length, const int32_t *expected,
                       size_t count) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text back = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, length), TARN_STATUS_OK);
  assert_int_equal(ids.count, count);
  if (count) assert_memory_equal(ids.data, expected, count * sizeof *expected);
  assert_int_equal(tarn_vocab_decode(vocab, &back, ids.data, ids.count), TARN_STATUS_OK);
  assert_int_equal(back.length, length);
  assert_memory_equal(back.data, text, length + 1);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&back);
}

static void test_import(void **state) {
  (void)state;
  write_files(GOOD, MERGES);
  assert_int_equal(tarn_vocab_import_gpt2("one", "."), TARN_STATUS_OK);
  static const char *const paths[] = {"one", ".", "./", "vocab.json", "./merges.txt"};
  char hash[64] = "";
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_open(&vocab, paths[i]), TARN_STATUS_OK);
    if (i == 0) snprintf(hash, sizeof hash, "%s", tarn_vocab_hash(vocab));
    assert_string_equal(tarn_vocab_hash(vocab), hash);
    assert_int_equal(tarn_vocab_size(vocab), 260);
    assert_int_equal(tarn_vocab_unk(vocab), -1);
    assert_int_equal(tarn_vocab_bos(vocab), 256);
    assert_int_equal(tarn_vocab_eos(vocab), 256);
    assert_string_equal(tarn_vocab_piece(vocab, 259),
                        "\xC4\xA0"
                        "a");
    expect_ids(vocab, "", 0, NULL, 0);
    expect_ids(vocab, "abcab a\xFF\0", 9, (const int32_t[]){258, 257, 259, 0xFF, 0}, 5);
    tarn_vocab_text text = {0};
    assert_int_equal(tarn_vocab_decode(vocab, &text, (const int32_t[]){256, 97, 256}, 3), TARN_STATUS_OK);
    assert_string_equal(text.data, "a");
    tarn_vocab_text_close(&text);
    tarn_vocab_close(&vocab);
  }
}

static void expect_failure(tarn_status expected, const char *path, const char *message) {
  tarn_status status = tarn_vocab_import_gpt2("never", path);
  if (status != expected || !strstr(tarn_error_message(), message)) print_error("%s\n", tarn_error_message());
  assert_int_equal(status, expected);
  assert_non_null(strstr(tarn_error_message(), message));
  assert_false(tarn__file_exists("never"));
}

static void test_bad_files(void **state) {
  (void)state;
  static const struct {
    const char *tokens, *merges, *message;
  } cases[] = {
      {"\"<|endoftext|>\": 256, \"ab\": 256", "", "same id 256"},
      {"\"<|endoftext|>\": 257", "", "has the id 257, but the ids of 257 tokens are 0 to 256"},
      {"\"<|endoftext|>\": -1", "", "has the id -1"},
      {"\"<|endoftext|>\": 99999999999", "", "has the id 99999999999"},
      {"\"<|endoftext|>\": 256.5", "", "not a whole number"},
      {"\"<|endoftext|>\": \"256\"", "", "not a whole number"},
      {"\"<|endoftext|>\": 256, \"<|endoftext|>\": 257", "", "duplicate"},
      {"\"end\": 256", "", "./vocab.json: damaged vocabulary: it has no token <|endoftext|>"},
      {"\"<|endoftext|>\": 256, \"\": 257", "", "token 257"},
      {"\"<|endoftext|>\": 256, \"\\u4e00\": 257", "", "token 257"},
      {"\"<|endoftext|>\": 256, \"a b\": 257", "", "white space"},
      {"\"<|endoftext|>\": 256, \"a\\nb\": 257", "", "white space"},
      {"\"<|endoftext|>\": 256, \"a\\u0000b\": 257", "", "vocab.json:1:"},
      {"\"<|endoftext|>\": 256, [1]", "", "vocab.json:1:"},
      {GOOD, "a b\nab x\n", "./merges.txt:2: damaged vocabulary: merge 1 (\"ab x\") makes no token"},
      {GOOD, "#version: 0.2\r\na b\r\n\r\nab x\r\n", "./merges.txt:4: damaged vocabulary: merge 1 (\"ab x\")"},
      {GOOD, "a bb\n", "merge 0 is of \"bb\", which is no token"},
      {GOOD, "a b\na b\n", "is there twice"},
      {GOOD, "ab\n", "has no blank"},
      {GOOD, "a  b\n", "is no token"},
      {GOOD, "a b c\n", "is no token"},
      {GOOD, "a b\n\xFF\xFF c\n", "is no token"},
      {GOOD, "<|endoftext|> a\n", "is no token"},
      {GOOD ", \"<|endoftext|\": 260", "<|endoftext| >\n", "makes <|endoftext|>"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_files(cases[i].tokens, cases[i].merges);
    expect_failure(TARN_STATUS_DATA, ".", cases[i].message);
  }
  write_files(GOOD, MERGES);
  assert_int_equal(remove("merges.txt"), 0);
  expect_failure(TARN_STATUS_IO, ".", "merges.txt: cannot read");
  sandbox_write("vocab.json", "[1, 2]", 6);
  sandbox_write("merges.txt", MERGES, strlen(MERGES));
  expect_failure(TARN_STATUS_DATA, "merges.txt", "not a JSON object");
  sandbox_write("vocab.json", "{\"<|endoftext|>\": 0}", 20);
  expect_failure(TARN_STATUS_DATA, ".", "byte 0x00 has no token");
  assert_int_equal(remove("vocab.json"), 0);
  expect_failure(TARN_STATUS_DATA, ".", "neither vocab.json nor encoder.json");
  expect_failure(TARN_STATUS_USAGE, "somewhere.json", "one of these files");
  assert_int_equal(mkdir("vocab.json", 0700), 0);
  expect_failure(TARN_STATUS_DATA, ".", "special file");
  assert_int_equal(rmdir("vocab.json"), 0);
  FILE *file = fopen("vocab.json", "wb");
  assert_non_null(file);
  assert_int_equal(ftruncate(fileno(file), (off_t)1 << 40), 0);  // a hole of a terabyte
  fclose(file);
  expect_failure(TARN_STATUS_DATA, ".", "more than 67108864 bytes");
  assert_int_equal(remove("vocab.json"), 0);
}

// Damaged files of ours: refused, or they work without a crash (the sanitizers watch).
static void test_damaged(void **state) {
  (void)state;
  char *bytes;
  size_t size;
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  write_files(GOOD, MERGES);
  assert_int_equal(tarn_vocab_import_gpt2("one", "."), TARN_STATUS_OK);
  assert_int_equal(tarn__file_read("one", &bytes, &size), TARN_STATUS_OK);
  for (int k = 0; k < 2000; k++) {
    tarn_vocab *vocab;
    size_t at = (size_t)tarn__random_below(&random, size);
    char keep = bytes[at];
    if (k % 4) bytes[at] = (char)tarn__random_below(&random, 256);
    size_t given = k % 4 ? size : at;
    if (given && tarn_vocab_open_memory(&vocab, bytes, given) == TARN_STATUS_OK) {
      tarn_vocab_ids ids = {0};
      assert_int_equal(tarn_vocab_encode(vocab, &ids, "abc abca  bc\xFF", 13), TARN_STATUS_OK);
      tarn_vocab_ids_close(&ids);
      tarn_vocab_close(&vocab);
      assert_true(k % 4);  // what is cut off is missed
    }
    bytes[at] = keep;
  }
  tarn__free(bytes);
  static const char *const files[] = {"tarn-vocab gpt2 2\nsize 0\nmerges 0\n", "tarn-vocab gpt2 1\nsize 1000000\n!\n",
                                      "tarn-vocab gpt2 1\nsize 1000001\n", "tarn-vocab gpt2 1\nsize 0\nmerges 0\n"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_open_memory(&vocab, files[i], strlen(files[i])), TARN_STATUS_DATA);
  }
}

// Pieces of a megabyte take n log n steps: this would take minutes otherwise.
static void test_long_pieces(void **state) {
  (void)state;
  enum { LONG = 1 << 20 };
  tarn_vocab *vocab;
  tarn_vocab_ids ids = {0};
  write_files(GOOD, MERGES);
  assert_int_equal(tarn_vocab_open(&vocab, "."), TARN_STATUS_OK);
  char *text = malloc(LONG);
  assert_non_null(text);
  for (int i = 0; i < LONG; i++) text[i] = "abc"[i % 3];
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, LONG), TARN_STATUS_OK);
  assert_int_equal(ids.count, LONG / 3 + 1);
  memset(text, ' ', LONG);
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, LONG), TARN_STATUS_OK);
  assert_int_equal(ids.count, LONG);
  free(text);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&vocab);
}

static void test_split(void **state) {
  (void)state;
  // The pieces of each text, joined by |.
  static const char *const cases[][2] = {
      {"Hello world", "Hello| world"},
      {"it's we'll 'sup I'VE", "it|'s| we|'ll| '|sup| I|'|VE"},
      {"a  b\n\n c ", "a| | b|\n\n| c| "},
      {"x1234 56!? 7", "x|1234| 56|!?| 7"},
      {" \n", " \n"},
      {"'", "'"},
      {"!'s", "!'|s"},
      {"\xC2\xA0x\xE3\x80\x80\xE3\x80\x80y", "\xC2\xA0|x|\xE3\x80\x80|\xE3\x80\x80|y"},
      {"\xC3\xA4\xF0\x90\x97\x80's", "\xC3\xA4\xF0\x90\x97\x80|'s"},         // U+105C0, a letter of Unicode 16
      {"\xC3\xA4\xF0\x90\xA5\x80's", "\xC3\xA4|\xF0\x90\xA5\x80'|s"},        // U+10940, a letter of Unicode 17 only
      {"e\xCC\x81\xC2\xBD\xE2\x85\xA7", "e|\xCC\x81|\xC2\xBD\xE2\x85\xA7"},  // a combining mark is no letter
      {"a\xFF!\xE2\x82 \xF0\x9F", "a|\xFF!\xE2\x82| \xF0\x9F"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char joined[128] = "";
    const char *end = cases[i][0] + strlen(cases[i][0]);
    for (const char *at = cases[i][0]; at < end;) {
      const char *next = tarn__gpt2_split(at, end);
      assert_true(next > at && next <= end);
      if (joined[0]) strcat(joined, "|");
      strncat(joined, at, (size_t)(next - at));
      at = next;
    }
    assert_string_equal(joined, cases[i][1]);
  }
}

static void test_memory_failures(void **state) {
  (void)state;
  write_files(GOOD, MERGES);
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  char text[200];
  memset(text, 'a', sizeof text);  // longer than what the stack holds
  for (uint64_t n = 1;; n++) {
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    tarn__memory_fail_after(n);
    tarn_status status = tarn_vocab_open(&vocab, ".");
    if (status == TARN_STATUS_OK) status = tarn_vocab_encode(vocab, &ids, text, sizeof text);
    tarn__memory_fail_after(0);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_close(&vocab);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_import),      cmocka_unit_test(test_bad_files), cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_long_pieces), cmocka_unit_test(test_split),     cmocka_unit_test(test_memory_failures),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

// BERT's vocabulary: its files, what is wrong with them, words too long, and failing allocations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox.h"
#include "tarn/vocab.h"

static const char TOKENS[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\naff\n,\n##a \t\r\nuna\nE\n\n##\nun\na";

static void put(const char *name, const char *text) { sandbox_write(name, text, strlen(text)); }

static void expect(const tarn_vocab *vocab, const char *text, const char *expected) {
  tarn_vocab_ids ids = {0};
  char line[512] = "";
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
  for (size_t i = 0; i < ids.count; i++)
    snprintf(line + strlen(line), sizeof line - strlen(line), i ? " %d" : "%d", ids.data[i]);
  assert_string_equal(line, expected);
  tarn_vocab_ids_close(&ids);
}

static void test_pieces(void **state) {
  (void)state;
  tarn_vocab *vocab;
  put("vocab.txt", TOKENS);
  assert_int_equal(tarn_vocab_open(&vocab, "vocab.txt"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 17);
  assert_string_equal(tarn_vocab_piece(vocab, 10), "##a");  // without the white space at its end
  assert_string_equal(tarn_vocab_piece(vocab, 13), "");
  expect(vocab, "unaffable", "1");             // "una" is longer than "un", and "##ffable" is nothing
  expect(vocab, "UN, un\xCC\x81", "15 9 15");  // the last of two lines; case and accents go
  expect(vocab, "affable aff[MASK]", "8 7 8 1 1 1");
  expect(vocab, "## \xFF\xFE", "1 1");
  assert_false(tarn_vocab_begins_word(vocab, 7));
  assert_true(tarn_vocab_begins_word(vocab, 8));
  assert_true(tarn_vocab_begins_word(vocab, 4));
  char longest[102];
  memset(longest, 'a', 101);
  longest[100] = '\0';
  tarn_vocab_ids ids = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, longest, 100), TARN_STATUS_OK);
  assert_int_equal(ids.count, 100);
  longest[100] = 'a';
  assert_int_equal(tarn_vocab_encode(vocab, &ids, longest, 101), TARN_STATUS_OK);
  assert_int_equal(ids.count, 1);
  assert_int_equal(ids.data[0], 1);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&vocab);
}

static void expect_case(const char *settings, tarn_wordpiece_case casing, const char *expected) {
  tarn_vocab *vocab;
  assert_int_equal(tarn__mkdir("bert"), TARN_STATUS_OK);
  put("bert/vocab.txt", TOKENS);
  if (settings)
    put("bert/tokenizer_config.json", settings);
  else
    unlink("bert/tokenizer_config.json");
  assert_int_equal(tarn_vocab_import_wordpiece("v", "bert", casing), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  expect(vocab, "E A \xC3\xA1", expected);
  tarn_vocab_close(&vocab);
}

static void test_case(void **state) {
  (void)state;
  expect_case(NULL, TARN_WORDPIECE_CASE_AS_SAID, "1 16 16");
  expect_case(NULL, TARN_WORDPIECE_CASED, "12 1 1");
  expect_case("{}", TARN_WORDPIECE_CASE_AS_SAID, "1 16 16");
  expect_case("{\"do_lower_case\": false}", TARN_WORDPIECE_CASE_AS_SAID, "12 1 1");
  expect_case("{\"do_lower_case\": false, \"strip_accents\": true}", TARN_WORDPIECE_CASE_AS_SAID, "12 1 16");
  expect_case("{\"strip_accents\": false, \"other\": []}", TARN_WORDPIECE_CASE_AS_SAID, "1 16 1");
  expect_case("{\"strip_accents\": null}", TARN_WORDPIECE_CASE_AS_SAID, "1 16 16");
  expect_case("{\"do_lower_case\": true}", TARN_WORDPIECE_CASED, "12 1 1");
  expect_case("{\"do_lower_case\": false}", TARN_WORDPIECE_UNCASED, "1 16 16");
  // The same vocabulary by its path and by its file.
  tarn_vocab *direct, *imported;
  assert_int_equal(tarn_vocab_open(&direct, "bert/vocab.txt"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_import_wordpiece("v", "bert/vocab.txt", TARN_WORDPIECE_CASE_AS_SAID), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&imported, "v"), TARN_STATUS_OK);
  assert_string_equal(tarn_vocab_hash(direct), tarn_vocab_hash(imported));
  tarn_vocab_close(&direct);
  tarn_vocab_close(&imported);
}

// A vocabulary of ours may have the name of BERT's file.
static void test_own_file_of_that_name(void **state) {
  (void)state;
  tarn_vocab *vocab;
  put("vocab.txt", "tarn-vocab byte 1\n");
  assert_int_equal(tarn_vocab_open(&vocab, "vocab.txt"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 259);
  tarn_vocab_close(&vocab);
  assert_int_equal(tarn_vocab_import_wordpiece("v", "vocab.txt", TARN_WORDPIECE_CASED), TARN_STATUS_USAGE);
}

static void expect_refused(const char *path, const char *message) {
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, path), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), message)) fail_msg("%s: %s", message, tarn_error_message());
  assert_null(vocab);
}

static void test_refused(void **state) {
  (void)state;
  put("vocab.txt", "[UNK]\n[SEP]\na\n");
  expect_refused("vocab.txt", "[UNK], [CLS] and [SEP]");
  put("vocab.txt", "[UNK]\n[SEP]\n[CLS]\n\xC3\n");
  expect_refused("vocab.txt", "vocab.txt:4: the token is not UTF-8");
  put("vocab.txt", "");
  expect_refused("vocab.txt", "[UNK], [CLS] and [SEP]");
  static const struct {
    const char *settings, *message;
  } cases[] = {{"{", "tokenizer_config.json:1: "},
               {"[]", "not a JSON object"},
               {"{\"do_lower_case\": 1}", "\"do_lower_case\" must be true or false"},
               {"{\"strip_accents\": \"yes\"}", "\"strip_accents\" must be true or false"},
               {"{\"do_basic_tokenize\": false}", "\"do_basic_tokenize\" is false"}};
  assert_int_equal(tarn__mkdir("bad"), TARN_STATUS_OK);
  put("bad/vocab.txt", TOKENS);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put("bad/tokenizer_config.json", cases[i].settings);
    expect_refused("bad", cases[i].message);
  }
  static const char *const files[] = {
      "tarn-vocab wordpiece 2\n",
      "tarn-vocab wordpiece 1\nlowercase 2\n",
      "tarn-vocab wordpiece 1\nlowercase 1\nstrip_accents 1\nsize 3\n",
      "tarn-vocab wordpiece 1\nlowercase 1\nstrip_accents 1\nchinese 1\nsize 4000000\n[UNK]\n",
      "tarn-vocab wordpiece 1\nlowercase 1\nstrip_accents 1\nchinese 1\nsize 4\n[UNK]\n[CLS]\n[SEP]\n",
      "tarn-vocab wordpiece 1\nlowercase 1\nstrip_accents 1\nchinese 1\nsize 3\n[UNK]\n[CLS]\n[SEP]\nmore\n",
      "tarn-vocab wordpiece 1\nlowercase 1\nstrip_accents 1\nchinese 1\nsize 4\n[UNK]\n[CLS]\n[SEP]\n\xFF\n"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    put("v", files[i]);
    expect_refused("v", "v: ");
  }
}

// Every allocation may fail: a status, and nothing is lost.
static void test_memory_failures(void **state) {
  (void)state;
  put("vocab.txt", TOKENS);
  bool done = false;
  for (uint64_t n = 1; !done; n++) {
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    tarn__memory_fail_after(n);
    tarn_status status = tarn_vocab_open(&vocab, "vocab.txt");
    if (status == TARN_STATUS_OK) status = tarn_vocab_encode(vocab, &ids, "unable a\xCC\x81", 10);
    tarn__memory_fail_after(0);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_close(&vocab);
    done = status == TARN_STATUS_OK;
    if (!done) assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_true(n < 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_case),
                                     cmocka_unit_test(test_own_file_of_that_name), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_memory_failures)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

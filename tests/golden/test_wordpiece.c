// WordPiece against the package tokenizers (make_wordpiece.py): texts with rare characters, cased and uncased.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "sandbox.h"
#include "tarn/vocab.h"

#define GOLDEN TARN_SOURCE_DIR "/tests/golden/"

static size_t unhex(char *out, const char *hex, size_t digits) {
  for (size_t i = 0; i < digits / 2; i++) {
    unsigned byte;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
    out[i] = (char)byte;
  }
  return digits / 2;
}

// A line is a text, ids and the decoded text, with tabs between them.
static void check_case(const tarn_vocab *vocab, char *line, int number) {
  static char text[1 << 14], back[1 << 14];
  char *ids_of = strchr(line, '\t');
  assert_non_null(ids_of);
  char *back_of = strchr(ids_of + 1, '\t');
  assert_non_null(back_of);
  const size_t length = unhex(text, line, (size_t)(ids_of - line));
  const size_t back_length = unhex(back, back_of + 1, strcspn(back_of + 1, "\n"));
  tarn_vocab_ids ids = {0};
  tarn_vocab_text decoded = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, length), TARN_STATUS_OK);
  char *at = ids_of + 1;
  for (size_t i = 0; i < ids.count; i++) {
    if (at >= back_of || strtol(at, &at, 10) != ids.data[i]) fail_msg("case %d: token %zu differs", number, i);
  }
  if (at < back_of) fail_msg("case %d: tokens are missing", number);
  assert_int_equal(tarn_vocab_decode(vocab, &decoded, ids.data, ids.count), TARN_STATUS_OK);
  if (decoded.length != back_length || memcmp(decoded.data, back, back_length) != 0)
    fail_msg("case %d: decoded as \"%s\"", number, decoded.data);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&decoded);
}

static void check_cases(const char *path, const tarn_vocab *vocab) {
  FILE *file = fopen(path, "rb");
  char *line = NULL;
  size_t capacity = 0;
  int count = 0;
  assert_non_null(file);
  while (getline(&line, &capacity, file) > 0) check_case(vocab, line, ++count);
  assert_true(count > 300);
  free(line);
  fclose(file);
}

static void test_cases(void **state) {
  (void)state;
  static const tarn_wordpiece_case CASES[] = {TARN_WORDPIECE_CASED, TARN_WORDPIECE_UNCASED};
  static const char *const FILES[] = {GOLDEN "wordpiece_cased.cases", GOLDEN "wordpiece_uncased.cases"};
  for (int i = 0; i < 2; i++) {
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_import_wordpiece("v", GOLDEN "wordpiece_toy", CASES[i]), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_pad(vocab), 0);
    assert_int_equal(tarn_vocab_unk(vocab), 1);
    assert_int_equal(tarn_vocab_bos(vocab), 2);
    assert_int_equal(tarn_vocab_eos(vocab), 3);
    for (int k = 0; k < TARN_SPECIAL_COUNT; k++) assert_int_equal(tarn_vocab_special(vocab, (tarn_special)k), 2 + k);
    check_cases(FILES[i], vocab);
    tarn_vocab_close(&vocab);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

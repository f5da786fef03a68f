// GPT-2's vocabulary against the packages tokenizers and tiktoken (make_gpt2_vocab.py).
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "tarn/vocab.h"

#define GOLDEN TARN_SOURCE_DIR "/tests/golden/"

typedef struct reader {
  FILE *file;
  char *line;
  size_t capacity;
  char *text;
  size_t length;
  int32_t *ids;
  size_t count;
  int64_t number;
} reader;

static int digit(char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; }

// Takes the next case; false at the end of the file.
static bool next_case(reader *r) {
  ssize_t size = getline(&r->line, &r->capacity, r->file);
  if (size < 0) return false;
  r->number++;
  char *tab = strchr(r->line, '\t');
  assert_non_null(tab);
  r->length = (size_t)(tab - r->line) / 2;
  r->text = realloc(r->text, r->length + 1);
  r->ids = realloc(r->ids, (size_t)size * sizeof *r->ids);
  assert_true(r->text && r->ids);
  for (size_t i = 0; i < r->length; i++) r->text[i] = (char)(digit(r->line[2 * i]) << 4 | digit(r->line[2 * i + 1]));
  r->count = 0;
  for (char *at = tab + 1; *at >= '0' && *at <= '9';) {
    r->ids[r->count++] = (int32_t)strtol(at, &at, 10);
    if (*at == ' ') at++;
  }
  return true;
}

static void check_cases(const char *path, const tarn_vocab *vocab) {
  reader r = {.file = fopen(path, "r")};
  assert_non_null(r.file);
  tarn_vocab_ids ids = {0};
  tarn_vocab_text text = {0};
  int64_t wrong = 0;
  while (next_case(&r)) {
    assert_int_equal(tarn_vocab_encode(vocab, &ids, r.text, r.length), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_decode(vocab, &text, ids.data, ids.count), TARN_STATUS_OK);
    bool same = ids.count == r.count && (!r.count || memcmp(ids.data, r.ids, r.count * sizeof *r.ids) == 0);
    bool back = text.length == r.length && memcmp(text.data, r.text, r.length) == 0;
    if ((!same || !back) && wrong++ < 5)
      print_error("%s:%lld: %s\n", path, (long long)r.number, same ? "decoded text differs" : "tokens differ");
  }
  print_message("%s: %lld cases, %lld wrong\n", path, (long long)r.number, (long long)wrong);
  assert_int_equal(wrong, 0);
  assert_true(r.number > 100);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&text);
  fclose(r.file);
  free(r.line);
  free(r.text);
  free(r.ids);
}

// The ids of the toy vocabulary are in no order, so that ranks and ids cannot be mixed up.
static void test_toy(void **state) {
  (void)state;
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, GOLDEN "gpt2_toy"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 640);
  assert_int_equal(tarn_vocab_unk(vocab), -1);
  assert_int_equal(tarn_vocab_bos(vocab), tarn_vocab_eos(vocab));
  assert_string_equal(tarn_vocab_piece(vocab, tarn_vocab_eos(vocab)), "<|endoftext|>");
  check_cases(GOLDEN "gpt2_toy.cases", vocab);
  tarn_vocab_close(&vocab);
}

static void test_real(void **state) {
  (void)state;
  const char *data = getenv("TARN_DATA");
  const char *cases = getenv("TARN_GPT2_CASES");
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/gpt2", data ? data : TARN_SOURCE_DIR "/../shared/data");
  if (access(folder, R_OK) != 0) {
    print_message("there is no %s: GPT-2's own vocabulary is not tested\n", folder);
    skip();
  }
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, folder), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 50257);
  assert_int_equal(tarn_vocab_eos(vocab), 50256);
  assert_string_equal(tarn_vocab_piece(vocab, 262), "\xC4\xA0the");
  check_cases(GOLDEN "gpt2_real.cases", vocab);
  if (cases) check_cases(cases, vocab);
  tarn_vocab_close(&vocab);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_toy), cmocka_unit_test(test_real)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

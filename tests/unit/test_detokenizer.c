// The text of tokens that come one by one: what all of them decode to, at every place what no later one changes, and at
// a cost that does not grow, for vocabularies of every kind and tokens that spell no characters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/random.h"
#include "decode/continuation.h"
#include "decode/detokenizer.h"
#include "sandbox.h"

enum { TEXTS = 60, MOST = 120, EOS = 2 };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static tarn_vocab *opened(const char *path) {
  tarn_vocab *vocab;
  must(tarn_vocab_open(&vocab, path));
  return vocab;
}

static tarn_vocab *trained(tarn_vocab_type type) {
  const char *files[] = {"text"};
  tarn_vocab_options options;
  FILE *file = fopen("text", "wb");
  assert_non_null(file);
  for (int i = 0; i < 200; i++) fprintf(file, "Der Vögel %d sieht €%d, das Haus – nicht 漢字.\n", i, 7 * i % 50);
  assert_int_equal(fclose(file), 0);
  tarn_vocab_default(&options);
  options.type = type;
  if (type != TARN_VOCAB_TYPE_BYTE) options.size = 70;
  must(tarn_vocab_train("vocab", files, type == TARN_VOCAB_TYPE_BYTE ? 0 : 1, &options));  // of all bytes
  return opened("vocab");
}

// One text: `count` ids, of which the first `prompt` are given.
static void check(const tarn_vocab *vocab, const int32_t *ids, int64_t prompt, int64_t count) {
  tarn__detokenizer d = {0};
  tarn__continuation whole = {0};
  size_t certain[MOST + 1] = {0};
  char *seen[MOST + 1] = {NULL};
  must(tarn__detokenizer_begin(&d, vocab, ids, (size_t)prompt));
  assert_int_equal(d.length, 0);
  for (int64_t i = prompt; i < count; i++) {
    must(tarn__detokenizer_add(&d, ids[i]));
    assert_true(d.certain <= d.length && d.certain >= certain[i]);
    certain[i + 1] = d.certain;
    seen[i + 1] = malloc(d.certain + 1);
    memcpy(seen[i + 1], d.text, d.certain);
    assert_true(d.count < 3 * MOST / 4);  // the last tokens, not all
  }
  must(tarn__continuation_decode(&whole, vocab, ids, prompt, count));
  assert_int_equal(d.length, whole.text.length - whole.begin);
  assert_memory_equal(d.text, whole.text.data + whole.begin, d.length);
  for (int64_t i = prompt; i < count; i++) {
    assert_memory_equal(seen[i + 1], d.text, certain[i + 1]);
    free(seen[i + 1]);
  }
  tarn__continuation_close(&whole);
  tarn__detokenizer_close(&d);
}

// Random tokens from `low` on, with prompts of every length from 0.
static void check_random(const tarn_vocab *vocab, int32_t low, int32_t high, uint64_t seed) {
  tarn__random random;
  tarn__random_init(&random, seed, 0);
  for (int text = 0; text < TEXTS; text++) {
    int32_t ids[MOST];
    for (int i = 0; i < MOST; i++) ids[i] = low + (int32_t)tarn__random_below(&random, (uint64_t)(high - low));
    check(vocab, ids, text / 2, MOST - text);
  }
}

static void every_kind(void **state) {
  static const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_WHITESPACE,
                                          TARN_VOCAB_TYPE_BYTE, TARN_VOCAB_TYPE_CHAR};
  (void)state;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    tarn_vocab *vocab = trained(types[i]);
    check_random(vocab, 3, tarn_vocab_size(vocab), i);
    check_random(vocab, 0, 8, i);  // many without text
    tarn_vocab_close(&vocab);
  }
}

// A vocabulary that writes U+FFFD for a byte until the character is complete.
static void bytes_of_characters(void **state) {
  (void)state;
  tarn_vocab *vocab = opened(TARN_SOURCE_DIR "/tests/golden/byte_fallback.model");
  const int32_t bytes = 3, end = bytes + 256;
  assert_string_equal(tarn_vocab_piece(vocab, bytes), "<0x00>");
  check_random(vocab, bytes, end, 1);                        // bytes alone
  check_random(vocab, bytes + 0x7E, bytes + 0xC6, 2);        // mostly inside of characters
  check_random(vocab, end - 40, tarn_vocab_size(vocab), 3);  // and among others
  // Characters of 2, 3 and 4 bytes: nothing of them is told before they are complete.
  static const unsigned char spelt[] = {'a', 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80, 'b'};
  static const size_t certain[] = {1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  tarn__detokenizer d = {0};
  must(tarn__detokenizer_begin(&d, vocab, NULL, 0));
  for (size_t i = 0; i < sizeof spelt; i++) {
    must(tarn__detokenizer_add(&d, bytes + spelt[i]));
    assert_int_equal(d.certain, certain[i]);
  }
  assert_memory_equal(d.text, spelt, sizeof spelt);
  tarn__detokenizer_close(&d);
  tarn_vocab_close(&vocab);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind), cmocka_unit_test(bytes_of_characters)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}

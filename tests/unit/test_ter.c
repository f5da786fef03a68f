// TER against sacreBLEU's own numbers (tests/golden/scores.json), and what the golden file cannot hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/ter_edits.h"
#include "tarn/score.h"
#include "unit/score_golden.h"

static void check_case(const json_t *root, const json_t *c) {
  golden_corpus corpus;
  tarn_ter_result result;
  char signature[TARN_SIGNATURE_TEXT];
  golden_read(&corpus, root, golden_text(c, "corpus"));
  const tarn_ter_options options = {.case_sensitive = golden_flag(c, "case_sensitive"),
                                    .normalized = golden_flag(c, "normalized"),
                                    .no_punct = golden_flag(c, "no_punct"),
                                    .asian_support = golden_flag(c, "asian_support")};
  assert_int_equal(
      tarn_ter_corpus(&result, corpus.hypotheses, corpus.streams, corpus.sentences, corpus.count, &options),
      TARN_STATUS_OK);
  golden_near(result.score, golden_real(c, "score"), c);
  golden_near((double)result.edits, golden_real(c, "edits"), c);
  golden_near(result.reference_length, golden_real(c, "ref_len"), c);
  tarn_ter_signature(signature, &result, &options);
  golden_signature(signature, c);
  for (size_t s = 0; s < corpus.sentences; s++) {
    const char *row[GOLDEN_STREAMS];
    for (size_t r = 0; r < corpus.count; r++) row[r] = corpus.lines[r][s];
    assert_int_equal(tarn_ter_sentence(&result, corpus.hypotheses[s], row, corpus.count, &options), TARN_STATUS_OK);
    golden_near(result.score, json_number_value(json_array_get(json_object_get(c, "sentences"), s)), c);
  }
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  json_t *root = golden_open();
  const json_t *cases = json_object_get(root, "ter");
  assert_true(json_array_size(cases) > 150);
  for (size_t i = 0; i < json_array_size(cases); i++) check_case(root, json_array_get(cases, i));
  json_decref(root);
}

static void defaults(void **state) {
  (void)state;
  tarn_ter_options options;
  tarn_ter_result result;
  const char *reference = "the cat sat on the mat today";
  tarn_ter_default(&options);
  // A block of two words moves, and "TODAY" is "today" unless case counts: 1 of 7, 2 of 7.
  assert_int_equal(tarn_ter_sentence(&result, "on the the cat sat mat TODAY", &reference, 1, &options), TARN_STATUS_OK);
  assert_int_equal(result.edits, 1);
  assert_true(result.reference_length == 7);
  assert_int_equal(tarn_ter_sentence(&result, "on the the cat sat mat TODAY", &reference, 1, NULL), TARN_STATUS_OK);
  assert_int_equal(result.edits, 1);
  options.case_sensitive = true;
  assert_int_equal(tarn_ter_sentence(&result, "on the the cat sat mat TODAY", &reference, 1, &options), TARN_STATUS_OK);
  assert_int_equal(result.edits, 2);
}

static void malformed_text_is_counted(void **state) {
  (void)state;
  const char *hypothesis = "a\xFF z\xC3";
  const char *same = "a\xEF\xBF\xBD z\xEF\xBF\xBD";
  tarn_ter_result result;
  assert_int_equal(tarn_ter_sentence(&result, hypothesis, &same, 1, NULL), TARN_STATUS_OK);
  assert_int_equal(result.invalid, 2);
  assert_int_equal(result.edits, 0);
}

static void bad_arguments_fail(void **state) {
  (void)state;
  tarn_ter_result result;
  tarn__ter_edits edits = {0};
  int64_t number;
  const char *none = NULL;
  assert_int_equal(tarn_ter_sentence(&result, "a", &none, 1, NULL), TARN_STATUS_DATA);
  assert_int_equal(tarn_ter_corpus(&result, NULL, NULL, 0, 1, NULL), TARN_STATUS_DATA);
  assert_int_equal(tarn__ter_edits_count(&edits, &number, NULL, TARN__TER_WORDS + 1, NULL, 0), TARN_STATUS_DATA);
}

// Neighbours have changed places everywhere: the search ends after 1000 moves, and its table is a band, not a square.
static void long_lines(void **state) {
  (void)state;
  enum { WORDS = 50000 };
  uint32_t *words = malloc(2 * WORDS * sizeof *words);
  assert_non_null(words);
  for (uint32_t i = 0; i < WORDS; i++) {
    words[i] = 4 + i;
    words[WORDS + i] = 4 + (i ^ 1);
  }
  tarn__ter_edits edits = {0};
  int64_t number;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  assert_int_equal(tarn__ter_edits_count(&edits, &number, words, WORDS, words + WORDS, WORDS), TARN_STATUS_OK);
  assert_in_range(number, WORDS / 2 - 1000, WORDS / 2 + 1);
  assert_true(tarn__memory_now(TARN__MEMORY_OTHER) - before < (size_t)WORDS * 600);
  // The beam around the diagonal of three rows leaves out the places where the three words are.
  assert_int_equal(tarn__ter_edits_count(&edits, &number, words, 3, words, WORDS), TARN_STATUS_OK);
  assert_int_equal(number, WORDS);
  assert_int_equal(tarn__ter_edits_count(&edits, &number, words, WORDS, words, 3), TARN_STATUS_OK);
  assert_int_equal(number, WORDS - 3);
  tarn__ter_edits_close(&edits);
  free(words);
}

// Every allocation fails once; nothing leaks and the last attempt succeeds.
static void out_of_memory(void **state) {
  (void)state;
  const char *references[] = {"Ein ÄRGER sagte er: so", "Kein Ärger."};
  const tarn_ter_options options = {.normalized = true, .asian_support = true};
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn_status status = TARN_STATUS_MEMORY;
  int failures = 0;
  for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n++) {
    tarn_ter_result result;
    tarn__memory_fail_after(n);
    status = tarn_ter_sentence(&result, "Ein Ärger, sagt er: (so).", references, 2, &options);
    failures += status == TARN_STATUS_MEMORY;
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  tarn__memory_fail_after(0);
  assert_int_equal(status, TARN_STATUS_OK);
  assert_true(failures >= 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_sacrebleu),
      cmocka_unit_test(defaults),
      cmocka_unit_test(malformed_text_is_counted),
      cmocka_unit_test(bad_arguments_fail),
      cmocka_unit_test(long_lines),
      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

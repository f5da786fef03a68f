// chrF and chrF++ against sacreBLEU's own numbers (tests/golden/scores.json), and bad arguments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tarn/score.h"
#include "unit/score_golden.h"

static void check_sentences(const golden_corpus *corpus, const json_t *c, const tarn_chrf_options *options) {
  for (size_t s = 0; s < corpus->sentences; s++) {
    tarn_chrf_result result;
    const char *row[GOLDEN_STREAMS];
    for (size_t r = 0; r < corpus->count; r++) row[r] = corpus->lines[r][s];
    assert_int_equal(tarn_chrf_sentence(&result, corpus->hypotheses[s], row, corpus->count, options), TARN_STATUS_OK);
    golden_near(result.score, json_number_value(json_array_get(json_object_get(c, "sentences"), s)), c);
  }
}

static void check_case(const json_t *root, const json_t *c) {
  golden_corpus corpus;
  tarn_chrf_result result;
  char text[TARN_SIGNATURE_TEXT];
  golden_read(&corpus, root, golden_text(c, "corpus"));
  const tarn_chrf_options options = {.char_order = (int)golden_real(c, "char_order"),
                                     .word_order = (int)golden_real(c, "word_order"),
                                     .beta = (int)golden_real(c, "beta"),
                                     .lowercase = golden_flag(c, "lowercase"),
                                     .whitespace = golden_flag(c, "whitespace"),
                                     .eps_smoothing = golden_flag(c, "eps_smoothing")};
  assert_int_equal(
      tarn_chrf_corpus(&result, corpus.hypotheses, corpus.streams, corpus.sentences, corpus.count, &options),
      TARN_STATUS_OK);
  golden_near(result.score, golden_real(c, "score"), c);
  tarn_chrf_signature(text, &result, &options);
  golden_signature(text, c);
  tarn_chrf_name(text, &options);
  assert_string_equal(text, golden_text(c, "name"));
  check_sentences(&corpus, c, &options);
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  json_t *root = golden_open();
  const json_t *cases = json_object_get(root, "chrf");
  assert_true(json_array_size(cases) > 200);
  for (size_t i = 0; i < json_array_size(cases); i++) check_case(root, json_array_get(cases, i));
  json_decref(root);
}

static void defaults(void **state) {
  (void)state;
  tarn_chrf_options options;
  tarn_chrf_result result;
  const char *line = "Ein Hund läuft.";
  const char *reference = "Ein Hund lief.";
  tarn_chrf_default(&options);
  double score;
  assert_int_equal(tarn_chrf_sentence(&result, line, &reference, 1, &options), TARN_STATUS_OK);
  score = result.score;
  assert_true(score > 10 && score < 90);
  assert_int_equal(tarn_chrf_sentence(&result, line, &reference, 1, NULL), TARN_STATUS_OK);
  assert_true(result.score == score);
  assert_int_equal(tarn_chrf_sentence(&result, line, &line, 1, NULL), TARN_STATUS_OK);
  assert_true(result.score > 100 - 1e-9);
}

static void malformed_text_is_counted(void **state) {
  (void)state;
  const char *hypothesis = "a\xFF z\xC3";
  const char *same = "a\xEF\xBF\xBD z\xEF\xBF\xBD";
  tarn_chrf_result result;
  assert_int_equal(tarn_chrf_sentence(&result, hypothesis, &same, 1, NULL), TARN_STATUS_OK);
  assert_int_equal(result.invalid, 2);
  assert_true(result.score > 100 - 1e-9);
}

static void bad_arguments_fail(void **state) {
  (void)state;
  tarn_chrf_options options;
  tarn_chrf_result result;
  const char *line = "a";
  const char *none = NULL;
  assert_int_equal(tarn_chrf_sentence(&result, line, &none, 1, NULL), TARN_STATUS_DATA);
  assert_int_equal(tarn_chrf_corpus(&result, NULL, NULL, 0, 1, NULL), TARN_STATUS_DATA);
  tarn_chrf_default(&options);
  options.char_order = TARN_CHRF_ORDER_LIMIT + 1;
  assert_int_equal(tarn_chrf_sentence(&result, line, &line, 1, &options), TARN_STATUS_USAGE);
  tarn_chrf_default(&options);
  options.word_order = -1;
  assert_int_equal(tarn_chrf_sentence(&result, line, &line, 1, &options), TARN_STATUS_USAGE);
  tarn_chrf_default(&options);
  options.beta = 0;
  assert_int_equal(tarn_chrf_sentence(&result, line, &line, 1, &options), TARN_STATUS_USAGE);
}

// Every allocation fails once; nothing leaks and the last attempt succeeds.
static void out_of_memory(void **state) {
  (void)state;
  const char *hypothesis = "Ein Ärger, sagt er: (so).";
  const char *references[] = {"Ein ÄRGER sagte er: so", "Kein Ärger."};
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  options.word_order = 2;
  options.lowercase = true;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn_status status = TARN_STATUS_MEMORY;
  int failures = 0;
  for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n++) {
    tarn_chrf_result result;
    tarn__memory_fail_after(n);
    status = tarn_chrf_sentence(&result, hypothesis, references, 2, &options);
    failures += status == TARN_STATUS_MEMORY;
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  tarn__memory_fail_after(0);
  assert_int_equal(status, TARN_STATUS_OK);
  assert_true(failures >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_sacrebleu),
      cmocka_unit_test(defaults),
      cmocka_unit_test(malformed_text_is_counted),
      cmocka_unit_test(bad_arguments_fail),
      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

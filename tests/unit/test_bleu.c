// BLEU against sacreBLEU's own numbers (tests/golden/scores.json), and what the golden file cannot hold: malformed
// text, bad arguments, long lines, reading of files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/memory.h"
#include "tarn/score.h"
#include "unit/score_golden.h"

static void check_sentences(const golden_corpus *corpus, const json_t *c, tarn_bleu_options options) {
  options.effective_order = true;
  for (size_t s = 0; s < corpus->sentences; s++) {
    tarn_bleu_result result;
    const char *row[GOLDEN_STREAMS];
    for (size_t r = 0; r < corpus->count; r++) row[r] = corpus->lines[r][s];
    assert_int_equal(tarn_bleu_sentence(&result, corpus->hypotheses[s], row, corpus->count, &options), TARN_STATUS_OK);
    golden_near(result.score, json_number_value(json_array_get(json_object_get(c, "sentences"), s)), c);
  }
}

static void check_case(const json_t *root, const json_t *c) {
  golden_corpus corpus;
  tarn_bleu_options options;
  tarn_bleu_result result;
  char signature[TARN_SIGNATURE_TEXT];
  golden_read(&corpus, root, golden_text(c, "corpus"));
  tarn_bleu_default(&options);
  assert_int_equal(tarn_bleu_tokenizer_parse(&options.tokenizer, golden_text(c, "tokenize")), TARN_STATUS_OK);
  assert_int_equal(tarn_bleu_smoothing_parse(&options.smoothing, golden_text(c, "smooth")), TARN_STATUS_OK);
  options.smooth_value = golden_real(c, "smooth_value");
  options.lowercase = golden_flag(c, "lowercase");
  assert_int_equal(
      tarn_bleu_corpus(&result, corpus.hypotheses, corpus.streams, corpus.sentences, corpus.count, &options),
      TARN_STATUS_OK);
  golden_near(result.score, golden_real(c, "score"), c);
  golden_near(result.bp, golden_real(c, "bp"), c);
  golden_near((double)result.hypothesis_length, golden_real(c, "sys_len"), c);
  golden_near((double)result.reference_length, golden_real(c, "ref_len"), c);
  for (size_t n = 0; n < TARN_BLEU_ORDER; n++) {
    golden_near(result.precisions[n], json_number_value(json_array_get(json_object_get(c, "precisions"), n)), c);
    if (!json_object_get(c, "counts")) continue;
    golden_near((double)result.counts[n], json_number_value(json_array_get(json_object_get(c, "counts"), n)), c);
    golden_near((double)result.totals[n], json_number_value(json_array_get(json_object_get(c, "totals"), n)), c);
  }
  tarn_bleu_signature(signature, &result, &options);
  golden_signature(signature, c);
  check_sentences(&corpus, c, options);
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  json_t *root = golden_open();
  const json_t *cases = json_object_get(root, "bleu");
  assert_true(json_array_size(cases) > 200);
  for (size_t i = 0; i < json_array_size(cases); i++) check_case(root, json_array_get(cases, i));
  json_decref(root);
}

static void equal_texts_score_100(void **state) {
  (void)state;
  const char *lines[] = {"a b c d e", "f g h i"};
  const char *const *streams[] = {lines};
  tarn_bleu_result result;
  assert_int_equal(tarn_bleu_corpus(&result, lines, streams, 2, 1, NULL), TARN_STATUS_OK);
  assert_true(result.score > 100 - 1e-9 && result.score < 100 + 1e-9);
  assert_int_equal(result.references, 1);
}

static void malformed_text_is_counted(void **state) {
  (void)state;
  // A lone trail byte, an overlong form (two parts), a surrogate (three parts), a sequence cut short, 0xFF.
  const char *hypothesis = "a \x80 \xC0\xAF \xED\xA0\x80 \xE2\x82 \xFF z";
  const char *same =
      "a \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD z";
  tarn_bleu_result result;
  assert_int_equal(tarn_bleu_sentence(&result, hypothesis, &same, 1, NULL), TARN_STATUS_OK);
  assert_int_equal(result.invalid, 8);
  assert_int_equal(result.counts[0], 7);
  assert_true(result.score > 100 - 1e-9);
}

static void bad_arguments_fail(void **state) {
  (void)state;
  tarn_bleu_result result;
  tarn_bleu_options options;
  tarn_bleu_tokenizer tokenizer;
  tarn_bleu_smoothing smoothing;
  const char *line = "a";
  const char *none = NULL;
  tarn_bleu_default(&options);
  assert_int_equal(tarn_bleu_sentence(&result, line, &none, 1, NULL), TARN_STATUS_DATA);
  assert_string_equal(tarn_error_message(), "sentence 1 has no reference");
  assert_int_equal(tarn_bleu_sentence(&result, line, NULL, 0, NULL), TARN_STATUS_DATA);
  assert_int_equal(tarn_bleu_corpus(&result, NULL, NULL, 0, 0, NULL), TARN_STATUS_DATA);
  options.smooth_value = (double)__builtin_inff();
  assert_int_equal(tarn_bleu_sentence(&result, line, &line, 1, &options), TARN_STATUS_USAGE);
  options.smooth_value = -1;
  options.tokenizer = (tarn_bleu_tokenizer)77;
  assert_int_equal(tarn_bleu_sentence(&result, line, &line, 1, &options), TARN_STATUS_USAGE);
  assert_int_equal(tarn_bleu_tokenizer_parse(&tokenizer, "itnl"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "unknown BLEU tokenizer \"itnl\"; did you mean \"intl\"?");
  assert_int_equal(tarn_bleu_smoothing_parse(&smoothing, "whatever"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "unknown BLEU smoothing \"whatever\"; there are exp, floor, add-k and none");
}

static void long_line(void **state) {
  (void)state;
  enum { WORDS = 100000 };
  char *line = malloc(7 * WORDS + 1);
  assert_non_null(line);
  size_t used = 0;
  for (int i = 0; i < WORDS; i++) used += (size_t)sprintf(line + used, "%d ", i);
  const char *reference = line;
  tarn_bleu_result result;
  assert_int_equal(tarn_bleu_sentence(&result, line, &reference, 1, NULL), TARN_STATUS_OK);
  assert_int_equal(result.counts[3], WORDS - 3);
  free(line);
}

// Every allocation fails once; nothing leaks and the last attempt succeeds.
static void out_of_memory(void **state) {
  (void)state;
  const char *hypothesis = "Ein Ärger, sagt er: 3,5 %.";
  const char *references[] = {"Ein ÄRGER sagte er: 3.5 %", "Kein Ärger."};
  tarn_bleu_options options;
  tarn_bleu_default(&options);
  options.lowercase = true;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn_status status = TARN_STATUS_MEMORY;
  int failures = 0;
  for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n++) {
    tarn_bleu_result result;
    tarn__memory_fail_after(n);
    status = tarn_bleu_sentence(&result, hypothesis, references, 2, &options);
    failures += status == TARN_STATUS_MEMORY;
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  tarn__memory_fail_after(0);
  assert_int_equal(status, TARN_STATUS_OK);
  assert_true(failures >= 5);
}

static void lines_of_a_file(void **state) {
  (void)state;
  static const char content[] = "one \t\r\n\nthree\xC2\xA0\xE3\x80\x80\nfour\nbad\xA0\n \nlast";
  char path[] = "/tmp/tarn_score_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, content, sizeof content - 1), (ssize_t)sizeof content - 1);
  close(fd);
  tarn_score_lines lines;
  assert_int_equal(tarn_score_lines_open(&lines, path), TARN_STATUS_OK);
  unlink(path);
  assert_int_equal(lines.count, 7);
  assert_string_equal(lines.items[0], "one");
  assert_string_equal(lines.items[1], "");
  assert_string_equal(lines.items[2], "three");
  assert_string_equal(lines.items[3], "four");
  assert_string_equal(lines.items[4], "bad\xA0");
  assert_string_equal(lines.items[5], "");
  assert_string_equal(lines.items[6], "last");
  tarn_score_lines other = {.count = 3, .name = lines.name};
  assert_int_equal(tarn_score_lines_match(&lines, &lines), TARN_STATUS_OK);
  assert_int_equal(tarn_score_lines_match(&lines, &other), TARN_STATUS_DATA);
  tarn_score_lines_close(&lines);
  tarn_score_lines_close(&lines);
  tarn_score_lines_close(NULL);
  assert_int_equal(tarn_score_lines_open(&lines, path), TARN_STATUS_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_sacrebleu),
      cmocka_unit_test(equal_texts_score_100),
      cmocka_unit_test(malformed_text_is_counted),
      cmocka_unit_test(bad_arguments_fail),
      cmocka_unit_test(long_line),
      cmocka_unit_test(out_of_memory),
      cmocka_unit_test(lines_of_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Continuations and multiple choice: tarn/choices.h.
#include <math.h>

#include "api_models.h"
#include "tarn/choices.h"

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_language("run");
  api_masked("masked_run");
  return 0;
}

static tarn_lm *opened_of(const char *run) {
  tarn_lm *lm;
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.threads = 1;
  works(tarn_lm_open(&lm, run, &options));
  return lm;
}

static void use_tarn_continuations_score(void) {
  static const tarn_continuation items[] = {
      {"w3 w4", 5, " w5 w6", 6}, {"", 0, "w3 w4 w5 w6", 11}, {"w3 w4 ", 6, "w5 w6", 5}};
  tarn_continuation_score scores[3];
  tarn_lm *lm = opened_of("run");
  works(tarn_continuations_score(lm, scores, items, 3, true));
  assert_int_equal(scores[0].tokens, 2);
  assert_int_equal(scores[1].tokens, 4);
  assert_true(scores[0].log_probability < 0 && scores[1].log_probability < scores[0].log_probability);
  assert_true(scores[0].log_probability == scores[2].log_probability);
  works(tarn_continuations_score(lm, scores, items, 0, true));
  const tarn_continuation empty = {"w3", 2, "", 0}, blank = {"w3", 2, "  ", 2};
  refuses(tarn_continuations_score(lm, scores, &empty, 1, true), TARN_STATUS_DATA,
          "continuation 1: the continuation is empty");
  refuses(tarn_continuations_score(lm, scores, &blank, 1, true), TARN_STATUS_DATA, "has no token of its own");
  tarn_lm_close(&lm);
  lm = opened_of("masked_run");
  refuses(tarn_continuations_score(lm, scores, items, 1, true), TARN_STATUS_USAGE, "a masked language model");
  tarn_lm_close(&lm);
}

static void use_tarn_choices_format_parse(void) {
  tarn_choices_format format;
  works(tarn_choices_format_parse(&format, "piqa"));
  assert_int_equal(format, TARN_CHOICES_FORMAT_PIQA);
  refuses(tarn_choices_format_parse(&format, "pica"), TARN_STATUS_USAGE, "did you mean \"piqa\"?");
  refuses(tarn_choices_format_parse(&format, ""), TARN_STATUS_USAGE, "there are auto, choices, arc");
}

static void use_tarn_choices_format_name(void) {
  assert_string_equal(tarn_choices_format_name(TARN_CHOICES_FORMAT_LAMBADA), "lambada");
  assert_string_equal(tarn_choices_format_name(TARN_CHOICES_FORMAT_COUNT), "?");
}

static void use_tarn_choices_default(void) {
  tarn_choices_options options;
  tarn_choices_default(&options);
  assert_true(options.format == TARN_CHOICES_FORMAT_AUTO && !options.labels && options.bos);
}

#define QUESTION "{\"context\": \"w3\", \"choices\": [\"w4\", \"w5 w6\"], \"answer\": 1}\n"

static void use_tarn_choices_run(void) {
  tarn_lm *lm = opened_of("run");
  tarn_choices_options options;
  tarn_choices_result *result;
  tarn_choices_default(&options);
  api_write("questions", QUESTION "\n" QUESTION);
  works(tarn_choices_run(&result, lm, "questions", &options));
  assert_int_equal(result->questions, 2);
  assert_int_equal(result->choices, 4);
  assert_int_equal(result->counts[1], 2);
  assert_true(result->acc.accuracy == (result->answers[0] == '1'));  // both are the same question
  assert_true(isnan(result->perplexity) && result->log_probability[0] < 0);
  tarn_choices_close(&result);
  refuses(tarn_choices_run(&result, lm, "missing", &options), TARN_STATUS_IO, "missing");
  assert_null(result);
  options.format = TARN_CHOICES_FORMAT_ARC;
  refuses(tarn_choices_run(&result, lm, "questions", &options), TARN_STATUS_DATA, "questions:1: expected a text");
  options.format = TARN_CHOICES_FORMAT_COUNT;
  refuses(tarn_choices_run(&result, lm, "questions", &options), TARN_STATUS_USAGE, "there is no format of questions");
  tarn_lm_close(&lm);
}

static void use_tarn_choices_close(void) {
  tarn_choices_result *result = NULL;
  tarn_choices_close(&result);
  assert_null(result);
}

int main(void) {
  static const char *const headers[] = {"choices.h", NULL};
  static const api_use uses[] = {USE(tarn_continuations_score), USE(tarn_choices_format_parse),
                                 USE(tarn_choices_format_name), USE(tarn_choices_default),
                                 USE(tarn_choices_run),         USE(tarn_choices_close)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}

// Use of classifiers and regression models: tarn/classify.h.
#include <math.h>

#include "api_models.h"
#include "tarn/checkpoint.h"
#include "tarn/classify.h"

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_regression("number_run");
  api_language("text_run");
  api_classifier("run");
  api_no_models("run");
  api_texts();
  return 0;
}

static tarn_classify_options one_thread(void) {
  tarn_classify_options options;
  tarn_classify_default(&options);
  options.threads = 1;
  return options;
}

static tarn_classifier *opened_of(const char *run) {
  tarn_classifier *classifier;
  const tarn_classify_options options = one_thread();
  works(tarn_classifier_open(&classifier, run, &options));
  return classifier;
}

static tarn_classifier *opened(void) { return opened_of("run"); }

static void use_tarn_classify_default(void) {
  tarn_classify_options options;
  tarn_classify_default(&options);
  assert_int_equal(options.overlong, TARN_TRANSLATE_OVERLONG_TRUNCATE);
  assert_int_equal(options.max_tokens, 4096);
  assert_int_equal(options.window, 1024);
  assert_false(options.strict || options.ranks);
}

static void refuses_options(tarn_classify_options options, const char *words) {
  tarn_classifier *classifier;
  refuses(tarn_classifier_open(&classifier, "run", &options), TARN_STATUS_USAGE, words);
  assert_null(classifier);
}

static void use_tarn_classifier_open(void) {
  tarn_classifier *classifier = opened();
  tarn_classify_options options = one_thread();
  tarn_classifier_close(&classifier);
  REFUSES_NO_MODELS(tarn_classifier_open, classifier, options);
  refuses(tarn_classifier_open(&classifier, "text_run", &options), TARN_STATUS_USAGE, "does not tell labels");
  assert_null(classifier);
  options.max_tokens = (1 << 24) + 1;
  refuses_options(options, "1 to 16777216, not 16777217");
  options = one_thread();
  options.window = 1000001;
  refuses_options(options, "window must be from 1 to 1000000, not 1000001");
  options = one_thread();
  options.threads = -1;
  refuses_options(options, "threads must be from 0 to 1024, not -1");
  options = one_thread();
  options.overlong = (tarn_translate_overlong)7;
  refuses_options(options, "there is no rule 7 for texts that are overlong");
  options = one_thread();
  options.precision = TARN_TRANSLATE_PRECISION_COUNT;
  refuses_options(options, "unknown precision");
}

static void use_tarn_classifier_close(void) {
  tarn_classifier *classifier = opened();
  tarn_classifier_close(&classifier);
  assert_null(classifier);
  tarn_classifier_close(&classifier);
}

static void use_tarn_classifier_path(void) {
  tarn_classifier *classifier = opened();
  assert_non_null(strstr(tarn_classifier_path(classifier), "run/checkpoint"));
  tarn_classifier_close(&classifier);
}

static void use_tarn_classifier_classes(void) {
  tarn_classifier *classifier = opened(), *number = opened_of("number_run");
  assert_int_equal(tarn_classifier_classes(classifier), 2);
  assert_int_equal(tarn_classifier_classes(number), 0);
  tarn_classifier_close(&classifier);
  tarn_classifier_close(&number);
}

static void use_tarn_classifier_label(void) {
  tarn_classifier *classifier = opened(), *number = opened_of("number_run");
  assert_string_equal(tarn_classifier_label(classifier, 0), "bad");
  assert_string_equal(tarn_classifier_label(classifier, 1), "good");
  assert_string_equal(tarn_classifier_label(classifier, -1), "");
  assert_string_equal(tarn_classifier_label(classifier, 2), "");
  assert_string_equal(tarn_classifier_label(number, 0), "");
  tarn_classifier_close(&classifier);
  tarn_classifier_close(&number);
}

static void use_tarn_verb_at(void) {
  const tarn_verb *verb = tarn_verb_at(0);
  assert_string_equal(verb->word, "classify");
  assert_true(*verb->doing && *verb->summary && *verb->models && !verb->words);
  int count = 0;
  while (tarn_verb_at(count)) count++;
  assert_null(tarn_verb_at(count + 1));
  // A model is opened by its own verb or by none.
  tarn_classifier *classifier;
  tarn_classify_options options = one_thread();
  options.verb = "classify";
  works(tarn_classifier_open(&classifier, "run", &options));
  tarn_classifier_close(&classifier);
  options.verb = "guess";
  refuses(tarn_classifier_open(&classifier, "run", &options), TARN_STATUS_USAGE,
          "a classifier does not guess; its verb is classify");
}

static void use_tarn_classifier_verb(void) {
  tarn_classifier *classifier = opened(), *number = opened_of("number_run");
  assert_ptr_equal(tarn_classifier_verb(classifier), tarn_verb_at(0));
  assert_ptr_equal(tarn_classifier_verb(number), tarn_verb_at(0));
  tarn_classifier_close(&classifier);
  tarn_classifier_close(&number);
}

static tarn_status count_to(void *user, int64_t number, const tarn_classify_result *result) {
  int64_t *left = user;
  assert_true(number >= 1);
  if (result->probabilities) {
    assert_true(fabs(result->probabilities[0] + result->probabilities[1] - 1) < 1e-6);
    assert_true(result->probabilities[result->order[0]] >= result->probabilities[result->order[1]]);
  } else {
    assert_true(isfinite(result->number) && !result->order);
  }
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_classifier_file(void) {
  tarn_classifier *classifier = opened(), *number = opened_of("number_run");
  int64_t left = 10;
  works(tarn_classifier_file(classifier, "full", count_to, &left));
  works(tarn_classifier_file(classifier, "long", count_to, &left));
  works(tarn_classifier_file(number, "invalid", count_to, &left));
  assert_int_equal(left, 5);
  left = 1;
  assert_int_equal(tarn_classifier_file(classifier, "full", count_to, &left), TARN_STATUS_INTERRUPTED);
  left = 10;
  refuses(tarn_classifier_file(classifier, "missing", count_to, &left), TARN_STATUS_IO, "missing: ");
  refuses(tarn_classifier_file(classifier, "folder", count_to, &left), TARN_STATUS_IO, "folder: ");
  refuses(tarn_classifier_file(classifier, "zero", count_to, &left), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_classifier_file(classifier, "lines", count_to, &left), TARN_STATUS_DATA,
          "lines:2: a sentence that gives no token");
  tarn_classifier_close(&classifier);
  tarn_classifier_close(&number);
  tarn_classify_options options = one_thread();
  options.strict = true, options.overlong = TARN_TRANSLATE_OVERLONG_REFUSE;
  works(tarn_classifier_open(&classifier, "run", &options));
  refuses(tarn_classifier_file(classifier, "invalid", count_to, &left), TARN_STATUS_DATA, "invalid:2: ");
  refuses(tarn_classifier_file(classifier, "long", count_to, &left), TARN_STATUS_DATA, "long:1: 25 tokens");
  tarn_classifier_close(&classifier);
}

static void use_tarn_classifier_lines(void) {
  tarn_classifier *classifier = opened();
  const char *const lines[] = {"w6 w20", "w7\tw8", "w7\tw8\tw9"};
  const size_t lengths[] = {6, 5, 8};
  int64_t left = 10;
  works(tarn_classifier_lines(classifier, lines, lengths, 2, count_to, &left));
  works(tarn_classifier_lines(classifier, NULL, NULL, 0, count_to, &left));
  assert_int_equal(left, 8);
  refuses(tarn_classifier_lines(classifier, lines, lengths, 3, count_to, &left), TARN_STATUS_DATA,
          "text:3: more than one tab");
  refuses(tarn_classifier_lines(classifier, lines, (const size_t[]){0}, 1, count_to, &left), TARN_STATUS_DATA,
          "text:1: a sentence that gives no token");
  refuses(tarn_classifier_lines(classifier, lines + 1, (const size_t[]){3}, 1, count_to, &left), TARN_STATUS_DATA,
          "text:1: a sentence that gives no token");
  tarn_classifier_close(&classifier);
  // A file whose values stay in it.
  works(tarn_checkpoint_export_int8("quarter", "run"));
  classifier = opened_of("quarter");
  left = 10;
  works(tarn_classifier_lines(classifier, lines, lengths, 2, count_to, &left));
  assert_int_equal(left, 8);
  api_change("quarter");
  refuses(tarn_classifier_lines(classifier, lines, lengths, 2, count_to, &left), TARN_STATUS_IO,
          "quarter: it changed while it was in use");
  assert_int_equal(left, 8);
  tarn_classifier_close(&classifier);
}

static void use_tarn_classifier_test(void) {
  tarn_classifier *classifier = opened(), *number = opened_of("number_run");
  tarn_classify_test test;
  works(tarn_classifier_test(classifier, &test, "labels"));
  assert_int_equal(test.rows, 8);
  assert_string_equal(test.measures[0].measure->word, "accuracy");
  assert_true(test.loss > 0 && test.measures[0].low <= test.measures[0].high);
  works(tarn_classifier_test(number, &test, "numbers"));
  assert_int_equal(test.measure_count, 2);
  refuses(tarn_classifier_test(classifier, &test, "missing"), TARN_STATUS_IO, "missing");
  refuses(tarn_classifier_test(classifier, &test, "garbage"), TARN_STATUS_DATA, "garbage");
  refuses(tarn_classifier_test(classifier, &test, "train"), TARN_STATUS_DATA, "it holds pairs of a translation");
  refuses(tarn_classifier_test(classifier, &test, "text"), TARN_STATUS_DATA, "label");
  refuses(tarn_classifier_test(classifier, &test, "numbers"), TARN_STATUS_DATA, "numbers.tarn: ");
  refuses(tarn_classifier_test(number, &test, "labels"), TARN_STATUS_DATA, "labels.tarn: ");
  api_labelled("others", "vocab", false, (const char *const[]){"bad", "ugly"});
  refuses(tarn_classifier_test(classifier, &test, "others"), TARN_STATUS_DATA, "ugly");
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  tarn_vocab_close(&vocab);
  api_labelled("foreign", "masks", false, (const char *const[]){"bad", "good"});
  refuses(tarn_classifier_test(classifier, &test, "foreign"), TARN_STATUS_DATA, "prepared with another vocabulary");
  tarn_classifier_close(&classifier);
  tarn_classifier_close(&number);
}

int main(void) {
  static const char *const headers[] = {"classify.h", NULL};
  static const api_use uses[] = {USE(tarn_classify_default), USE(tarn_classifier_open),    USE(tarn_classifier_close),
                                 USE(tarn_classifier_path),  USE(tarn_classifier_classes), USE(tarn_classifier_label),
                                 USE(tarn_classifier_file),  USE(tarn_classifier_lines),   USE(tarn_classifier_test),
                                 USE(tarn_verb_at),          USE(tarn_classifier_verb)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}

// Multiple choice against lm-evaluation-harness (make_choices.py): log-probabilities, measures, files of the tasks'
// authors, bad input.
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "golden/import_check.h"
#include "tarn/choices.h"
#include "tarn/lab/foreign.h"

static const char *const tasks[] = {"arc", "hellaswag", "piqa", "lambada"};
enum { TASKS = sizeof tasks / sizeof *tasks };

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  must(tarn_vocab_import_gpt2("toy", GOLDEN "gpt2_toy"));
  must(tarn_checkpoint_import_gpt2("model", GOLDEN "choices/model", "toy"));
  return 0;
}

static tarn_lm *open_lm(tarn_translate_overlong overlong, int64_t max_tokens) {
  tarn_lm *lm;
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.overlong = overlong;
  options.max_tokens = max_tokens;
  must(tarn_lm_open(&lm, "model", &options));
  return lm;
}

static void check_task(tarn_lm *lm, const char *task, const json_t *expected, bool bos) {
  char path[256];
  tarn_choices_options options;
  tarn_choices_result *r;
  snprintf(path, sizeof path, GOLDEN "choices/%s.jsonl", task);
  tarn_choices_default(&options);
  options.bos = bos;
  must(tarn_choices_run(&r, lm, path, &options));
  assert_string_equal(tarn_choices_format_name(r->format), task);
  const json_t *questions = json_object_get(expected, "log_probabilities");
  assert_int_equal(r->questions, json_array_size(questions));
  int64_t next = 0;
  for (int64_t q = 0; q < r->questions; q++) {
    const json_t *choices = json_array_get(questions, (size_t)q);
    assert_int_equal(r->counts[q], json_array_size(choices));
    for (int i = 0; i < r->counts[q]; i++) {
      const double wanted = json_real_value(json_array_get(choices, (size_t)i));
      assert_true(fabs(r->log_probability[next++] - wanted) < 1e-5 * fabs(wanted));
    }
  }
  assert_int_equal(next, r->choices);
  assert_true(r->acc.accuracy == json_number_value(json_object_get(expected, "acc")));
  assert_int_equal(strspn(r->answers, "01"), r->questions);
  if (strcmp(task, "lambada") == 0) {
    const double wanted = json_real_value(json_object_get(expected, "perplexity"));
    assert_true(fabs(r->perplexity - wanted) < 1e-5 * wanted);
  } else {
    assert_true(r->norm.accuracy == json_number_value(json_object_get(expected, "acc_norm")));
    assert_true(r->bytes.accuracy == json_number_value(json_object_get(expected, "acc_bytes")));
    assert_true(r->acc.low < r->acc.accuracy && r->acc.accuracy < r->acc.high);
  }
  if (strcmp(task, "piqa") == 0) assert_int_equal(r->truncated, bos);
  tarn_choices_close(&r);
}

static void measures_are_the_harness_s(void **state) {
  (void)state;
  json_t *expected = json_load_file(GOLDEN "choices/expected.json", 0, NULL);
  assert_non_null(expected);
  tarn_lm *lm = open_lm(TARN_TRANSLATE_OVERLONG_TRUNCATE, 100);
  for (int t = 0; t < TASKS; t++) {
    char with[32];
    snprintf(with, sizeof with, "%s-bos", tasks[t]);
    check_task(lm, tasks[t], json_object_get(expected, tasks[t]), false);
    check_task(lm, tasks[t], json_object_get(expected, with), true);
  }
  tarn_lm_close(&lm);
  json_decref(expected);
}

static void write_lines(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

static tarn_choices_result *run(tarn_lm *lm, const char *path, const char *labels) {
  tarn_choices_options options;
  tarn_choices_result *r;
  tarn_choices_default(&options);
  options.labels = labels;
  must(tarn_choices_run(&r, lm, path, &options));
  return r;
}

static void same(const tarn_choices_result *a, const tarn_choices_result *b) {
  assert_int_equal(a->choices, b->choices);
  assert_memory_equal(a->log_probability, b->log_probability, (size_t)a->choices * sizeof(double));
  assert_string_equal(a->answers, b->answers);
  assert_int_equal(a->norm.right, b->norm.right);
}

// AI2's form of ARC, PIQA with a file of labels, and questions spelt out are the same questions.
static void forms_of_a_question_are_one(void **state) {
  (void)state;
  tarn_lm *lm = open_lm(TARN_TRANSLATE_OVERLONG_REFUSE, 4096);
  write_lines("hf.jsonl",
              "{\"question\": \"Why?\", \"choices\": {\"text\": [\"x\", \"it is\"], \"label\": [\"A\", \"B\"]}, "
              "\"answerKey\": \"B\"}\n");
  write_lines("ai2.jsonl",
              "\n{\"id\": 1, \"question\": {\"stem\": \"Why?\", \"choices\": [{\"text\": \"x\", \"label\": \"A\"}, "
              "{\"text\": \"it is\", \"label\": \"B\"}]}, \"answerKey\": \"B\"}\n");
  write_lines("piqa.jsonl", "{\"goal\": \"Why?\", \"sol1\": \"x\", \"sol2\": \"it is\"}\n");
  write_lines("labels.lst", "1\n");
  write_lines("plain.jsonl",
              "{\"context\": \"Question: Why?\\nAnswer:\", \"choices\": [\"x\", \"it is\"], \"answer\": 1}\n");
  tarn_choices_result *hf = run(lm, "hf.jsonl", NULL), *ai2 = run(lm, "ai2.jsonl", NULL),
                      *piqa = run(lm, "piqa.jsonl", "labels.lst"), *plain = run(lm, "plain.jsonl", NULL);
  same(hf, ai2);
  same(hf, piqa);
  same(hf, plain);
  assert_int_equal(plain->format, TARN_CHOICES_FORMAT_CHOICES);
  tarn_choices_close(&hf);
  tarn_choices_close(&ai2);
  tarn_choices_close(&piqa);
  tarn_choices_close(&plain);
  tarn_lm_close(&lm);
}

// A continuation's tokens are what the whole text's scores say of them.
static void continuations_are_ends_of_texts(void **state) {
  (void)state;
  tarn_lm *lm = open_lm(TARN_TRANSLATE_OVERLONG_REFUSE, 4096);
  static const char *const text = "the rock ran to the 99 weights";
  const size_t length = strlen(text);
  tarn_lm_line whole, part;
  must(tarn_lm_score(lm, &whole, &text, &length, 1));
  double sum = 0.0;
  for (int64_t t = 0; t < whole.tokens - 1; t++) sum += whole.log_probabilities[t];
  const size_t cut = 12;
  must(tarn_lm_score(lm, &part, &text, &cut, 1));
  double before = 0.0;
  for (int64_t t = 0; t < part.tokens - 1; t++) before += part.log_probabilities[t];
  const tarn_continuation items[] = {
      {text, 13, text + 13, length - 13}, {text, 12, text + 12, length - 12}, {"", 0, text, length}};
  tarn_continuation_score scores[3];
  must(tarn_continuations_score(lm, scores, items, 3, true));
  assert_true(scores[0].log_probability == scores[1].log_probability);  // the space belongs to what follows
  assert_true(fabs(scores[1].log_probability - (sum - before)) < 1e-9);
  assert_true(fabs(scores[2].log_probability - sum) < 1e-9);
  assert_false(scores[0].truncated || scores[0].greedy || scores[0].replaced);
  const tarn_continuation empty = {text, 12, "", 0};
  assert_int_equal(tarn_continuations_score(lm, scores, &empty, 1, true), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "continuation 1: the continuation is empty"));
  tarn_lm_close(&lm);
}

static void bad_questions_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"[1]", "bad.jsonl:1: expected a JSON object"},
      {"{\"a\": 1", "bad.jsonl:1: expected a JSON object: "},
      {"{\"a\": 1}", "expected a question: \"choices\" with \"context\""},
      {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 0}", "there are 2 to 1000 choices, not 1"},
      {"{\"context\": \"a\", \"choices\": [\"b\", \"\"], \"answer\": 0}", "choice 2 is empty"},
      {"{\"context\": \"a\", \"choices\": [\"b\", 3], \"answer\": 0}", "expected texts in \"choices\""},
      {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 2}",
       "\"answer\" must be the index of a choice, from 0 to 1"},
      {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": \"-1\"}", "\"answer\" must be the index"},
      {"{\"context\": \"a\", \"choices\": [\"b\", \"c\"]}", "the question has no answer; a file with the answers"},
      {"{\"question\": \"a\", \"choices\": [\"b\"]}", "a list of choices belongs to a \"context\""},
      {"{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": -1}", "the question has no answer"},
      {"{\"context\": \"a\\u0000b\", \"choices\": [\"b\", \"c\"]}", "bad.jsonl:1: "},
      {"{\"question\": \"a\", \"choices\": {\"text\": [\"b\", \"c\"], \"label\": [\"A\", \"B\"]}, \"answerKey\": "
       "\"C\"}",
       "no choice has the label \"C\""},
      {"{\"goal\": \"a\", \"sol1\": \"b\", \"label\": 0}", "expected a text \"sol2\""},
      {"{\"text\": \"ends in \"}", "has no last word"},
      {"{\"text\": \"a b\"}\n{\"goal\": \"a\"}", "bad.jsonl:2: expected a text \"text\""},
      {"\n \n", "bad.jsonl: it holds no question"},
  };
  tarn_lm *lm = open_lm(TARN_TRANSLATE_OVERLONG_REFUSE, 4096);
  tarn_choices_options options;
  tarn_choices_result *r;
  tarn_choices_default(&options);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_lines("bad.jsonl", cases[i].text);
    assert_int_equal(tarn_choices_run(&r, lm, "bad.jsonl", &options), TARN_STATUS_DATA);
    assert_null(r);
    if (!strstr(tarn_error_message(), cases[i].words)) fail_msg("%s: %s", cases[i].text, tarn_error_message());
  }
  write_lines("bad.jsonl", "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 0}\n");
  static const char *const labels[][2] = {{"1\n", "labels.lst:1: the answer is 1 here and 0 in the question"},
                                          {"x\n", "labels.lst:1: expected the index of a choice, from 0 to 1"},
                                          {"", "labels.lst has no line 1"},
                                          {"0\n1\n", "labels.lst has more lines than bad.jsonl questions, 1"}};
  options.labels = "labels.lst";
  for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
    write_lines("labels.lst", labels[i][0]);
    assert_int_equal(tarn_choices_run(&r, lm, "bad.jsonl", &options), TARN_STATUS_DATA);
    if (!strstr(tarn_error_message(), labels[i][1])) fail_msg("%s: %s", labels[i][0], tarn_error_message());
  }
  options.labels = NULL;
  assert_int_equal(tarn_choices_run(&r, lm, GOLDEN "choices/piqa.jsonl", &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "piqa.jsonl:3: choice 2: "));
  assert_non_null(strstr(tarn_error_message(), "what is overlong is refused here"));
  tarn_choices_format format;
  assert_int_equal(tarn_choices_format_parse(&format, "helaswag"), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "did you mean \"hellaswag\"?"));
  tarn_lm_close(&lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measures_are_the_harness_s), cmocka_unit_test(forms_of_a_question_are_one),
      cmocka_unit_test(continuations_are_ends_of_texts), cmocka_unit_test(bad_questions_are_named)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}

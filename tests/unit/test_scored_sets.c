// Scored sets: sentences scored in addition to the validation data, each on its own schedule, outside training time.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "same_run.h"
#include "tarn/lab/results.h"
#include "train/trainer.h"

#define SETS "sets={test: {data: test, every: 3}, held: {data: valid, every: 5, bleu: no}}"

static const char *const with_sets[] = {SETS, "valid.at_start=yes"};

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  make_shard("test", 9, TINY_VOCAB, TINY_VOCAB, 7);
  run_through("plain", NULL, 0);
  run_through("sets", with_sets, 2);
  return 0;
}

static bool is_of(const json_t *record, const char *kind, const char *set) {
  const char *own = json_string_value(json_object_get(record, "set"));
  return strcmp(json_string_value(json_object_get(record, "kind")), kind) == 0 && (!set || strcmp(own, set) == 0);
}

// The steps of a set's records; each is at the end of what is known of it, so that a repeated one would show.
static void assert_steps(const json_t *lines, const char *set, const int64_t *steps, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < json_array_size(lines); i++) {
    const json_t *record = json_array_get(lines, i);
    if (!is_of(record, "scored", set)) continue;
    assert_true(found < count);
    assert_int_equal(json_integer_value(json_object_get(record, "step")), steps[found++]);
    assert_true(json_is_number(json_object_get(record, "loss")));
    assert_true(json_is_number(json_object_get(record, "nll")));
    const bool bleu = json_is_number(json_object_get(record, "bleu"));
    assert_int_equal(bleu, strcmp(set, "test") == 0);
    assert_int_equal(json_object_get(record, "signature") != NULL, bleu);
  }
  assert_int_equal(found, count);
}

static void each_has_its_schedule(void **state) {
  (void)state;
  static const int64_t test[] = {0, 3, 6, 9, 12}, held[] = {0, 5, 10, 12};
  json_t *lines = read_log("sets");
  assert_steps(lines, "test", test, 5);
  assert_steps(lines, "held", held, 4);
  // The validation data under another name have the same loss where both are computed: at the start and at the end.
  for (int64_t step = 0; step <= 12; step += 12) {
    double valid = NAN, scored = NAN;
    for (size_t i = 0; i < json_array_size(lines); i++) {
      const json_t *record = json_array_get(lines, i);
      if (json_integer_value(json_object_get(record, "step")) != step || json_object_get(record, "checkpoint"))
        continue;
      if (is_of(record, "valid", NULL)) valid = json_number_value(json_object_get(record, "valid_loss"));
      if (is_of(record, "scored", NULL) && is_of(record, "scored", "held"))
        scored = json_number_value(json_object_get(record, "loss"));
    }
    assert_true(valid == scored);
  }
  json_decref(lines);
}

// What is scored changes nothing of what is trained.
static void the_training_is_the_same(void **state) {
  (void)state;
  assert_same_tensors("plain", "sets", TARN__CHECKPOINT_LAST);
  assert_same_tensors("plain", "sets", TARN__CHECKPOINT_BEST);
  json_t *plain = read_log("plain");
  json_t *lines = read_log("sets");
  size_t next = 0;
  for (size_t i = 0; i < json_array_size(lines); i++) {
    json_t *record = json_array_get(lines, i);
    const bool start = is_of(record, "valid", NULL) && json_integer_value(json_object_get(record, "step")) == 0;
    if (start || is_of(record, "scored", NULL)) continue;
    assert_true(json_equal(record, json_array_get(plain, next++)));
  }
  assert_int_equal(next, json_array_size(plain));
  json_decref(plain);
  json_decref(lines);
}

static void it_resumes_to_the_line(void **state) {
  (void)state;
  run_in_pieces("pieces", 1, with_sets, 2);
  assert_same_run("sets", "pieces");
}

// The points of "test/bleu" are at times at which nothing but training has passed, and have an area.
static void the_area_of_a_test_is_there(void **state) {
  (void)state;
  static const char *const paths[] = {"sets"};
  tarn_results *results;
  tarn_results_table *table;
  tarn_results_options options;
  tarn_results_default(&options);
  assert_int_equal(tarn_results_open(&results, paths, 1), TARN_STATUS_OK);
  static const char *const metrics[] = {"test/bleu", "test/loss", "test/ppl", "held/nll"};
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
    options.metric = metrics[m];
    if (tarn_results_compare(&table, results, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_string_equal(table->metric, metrics[m]);
    assert_int_equal(table->less, m > 0);
    const tarn_results_series *series = tarn_results_find(&results->runs[0], metrics[m]);
    assert_non_null(series);
    assert_int_equal(series->points[0].step, 0);
    assert_true(series->points[0].seconds == 0);
    double area = 0;
    const tarn_results_point *p = series->points;
    for (size_t i = 1; i < series->count; i++)
      area += (p[i].seconds - p[i - 1].seconds) * (p[i].value + p[i - 1].value) / 2;
    area += (table->budget - p[series->count - 1].seconds) * p[series->count - 1].value;
    area *= (table->less ? -1.0 : 1.0) / 60;
    assert_true(fabs(table->rows[0].aucc.mean - area) <= 1e-9 * fabs(area));
    assert_false(table->measures[0].assumed_start);
    tarn_results_table_close(&table);
  }
  tarn_results_close(&results);
}

static void other_sets_are_not_compared(void **state) {
  (void)state;
  static const char *const other[] = {"sets={test: {data: valid}}", "valid.at_start=yes", "train.seed=2"};
  run_through("other", other, 3);
  static const char *const paths[] = {"sets", "other"};
  tarn_results *results;
  tarn_results_table *table;
  tarn_results_options options;
  tarn_results_default(&options);
  options.metric = "test/bleu";
  options.budget = 1;
  assert_int_equal(tarn_results_open(&results, paths, 2), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "what they scored as test differs (sets.test"));
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

// A run that goes on finds the sentences that it began with.
static void changed_sentences_are_refused(void **state) {
  (void)state;
  stopper s = {.every = 4};
  assert_int_equal(tiny_train("tiny.yaml", "changed", with_sets, 2, stop_now_and_then, &s, &s.stop),
                   TARN_STATUS_INTERRUPTED);
  make_shard("test", 9, TINY_VOCAB, TINY_VOCAB, 8);
  assert_int_equal(tiny_train(NULL, "changed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), "has scores of other data as sets.test than test"))
    fail_msg("%s", tarn_error_message());
  make_shard("test", 9, TINY_VOCAB, TINY_VOCAB, 7);
  assert_int_equal(tiny_train(NULL, "changed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
}

static void stopped_run(const char *run, int64_t every, const char *const *overrides, size_t count) {
  stopper s = {.every = every};
  assert_int_equal(tiny_train("tiny.yaml", run, overrides, count, stop_now_and_then, &s, &s.stop),
                   TARN_STATUS_INTERRUPTED);
}

static void goes_on(const char *run, const char *const *overrides, size_t count) {
  if (tiny_train(NULL, run, overrides, count, NULL, NULL, NULL) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Scores of a set do not hold the validation data, nor those of another set.
static void each_holds_its_own_data(void **state) {
  (void)state;
  static const char *const keys[] = {"sets={test: {data: test}, late: {data: late, every: 10}}",
                                     "data.valid=", "sets.test.every=3"};
  static const char *const valid[] = {"data.valid=valid"};
  make_shard("late", 9, TINY_VOCAB, TINY_VOCAB, 8);
  stopped_run("own", 4, keys, 3);
  make_shard("late", 9, TINY_VOCAB, TINY_VOCAB, 9);
  goes_on("own", valid, 1);
}

static void data_may_move(void **state) {
  (void)state;
  static const char *const moved[] = {"sets.test.data=moved", "sets.test.every=2"};
  static const char *const refused[] = {"sets.test.bleu=no", "sets.test.date=moved", "sets.data=moved", "sets.test=x"};
  stopped_run("moves", 4, with_sets, 2);
  make_shard("moved", 9, TINY_VOCAB, TINY_VOCAB, 7);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    assert_int_equal(tiny_train(NULL, "moves", &refused[i], 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
    if (!strstr(tarn_error_message(), "sets.NAME.data")) fail_msg("%s", tarn_error_message());
  }
  goes_on("moves", moved, 2);
  static const int64_t steps[] = {0, 3, 4, 6, 8, 10, 12};
  json_t *lines = read_log("moves");
  assert_steps(lines, "test", steps, 7);
  json_decref(lines);
}

static void scoring_is_no_training_time(void **state) {
  (void)state;
  stopper s = {.every = 3};
  tarn_train *train;
  tarn_train_result result;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "time";
  options.overrides = with_sets;
  options.override_count = 2;
  options.on_event = stop_now_and_then;
  options.user = &s;
  options.stop = &s.stop;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_INTERRUPTED);
  const double seconds = train->progress.seconds, window = train->progress.window_seconds;
  s.stop = 0;
  assert_true(seconds > 0 && tarn__train_sets_due(train, false));
  assert_int_equal(tarn__train_score_sets(train), TARN_STATUS_OK);
  assert_int_equal(train->progress.scored[0], 4);
  assert_true(train->session.set_seconds[0] > 0);
  assert_true(train->progress.seconds == seconds && train->progress.window_seconds == window);
  tarn_train_close(&train);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_holds_its_own_data),     cmocka_unit_test(data_may_move),
      cmocka_unit_test(scoring_is_no_training_time),

      cmocka_unit_test(each_has_its_schedule),       cmocka_unit_test(the_training_is_the_same),
      cmocka_unit_test(it_resumes_to_the_line),      cmocka_unit_test(the_area_of_a_test_is_there),
      cmocka_unit_test(other_sets_are_not_compared), cmocka_unit_test(changed_sentences_are_refused),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}

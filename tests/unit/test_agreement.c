// Measures of answers against scikit-learn and SciPy (tests/golden/agreement.json), and their intervals.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/agreement.h"
#include "task/labelled.h"

enum { MOST = 1000 };

static void near(double value, const json_t *expected, const char *what) {
  const double wanted = json_number_value(expected);
  if (!(fabs(value - wanted) <= 1e-9)) fail_msg("%s is %.12g, not %.12g", what, value, wanted);
}

static void check_case(const json_t *one) {
  static int32_t classes[2][MOST];
  static float numbers[2][MOST];
  static uint32_t times[MOST];
  const json_t *lists[] = {json_object_get(one, "right"), json_object_get(one, "found")};
  tarn__agreement a = {.count = json_array_size(lists[0]),
                       .classes = (int32_t)json_integer_value(json_object_get(one, "classes")),
                       .right_class = classes[0],
                       .found_class = classes[1],
                       .right_number = numbers[0],
                       .found_number = numbers[1]};
  assert_in_range(a.count, 1, MOST);
  for (size_t i = 0; i < a.count; i++) {
    times[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(one, "times"), i));
    for (int side = 0; side < 2; side++) {
      classes[side][i] = (int32_t)json_integer_value(json_array_get(lists[side], i));
      numbers[side][i] = (float)json_number_value(json_array_get(lists[side], i));
    }
  }
  assert_int_equal(tarn__agreement_open(&a), TARN_STATUS_OK);
  static const tarn__agreement_measure of_classes[] = {tarn__agreement_accuracy, tarn__agreement_f1,
                                                       tarn__agreement_mcc};
  static const tarn__agreement_measure of_numbers[] = {tarn__agreement_pearson, tarn__agreement_spearman};
  const int count = a.classes ? 3 : 2;
  for (int k = 0; k < count; k++) {
    const tarn__agreement_measure measure = a.classes ? of_classes[k] : of_numbers[k];
    near(measure(&a, NULL), json_array_get(json_object_get(one, "whole"), (size_t)k), "a measure");
    near(measure(&a, times), json_array_get(json_object_get(one, "resampled"), (size_t)k), "a resampled measure");
  }
  tarn__agreement_close(&a);
}

static void golden(void **state) {
  (void)state;
  json_t *root = json_load_file(TARN_SOURCE_DIR "/tests/golden/agreement.json", 0, NULL), *one;
  const json_t *cases = json_object_get(root, "cases");
  size_t i;
  assert_true(json_array_size(cases) > 10);
  json_array_foreach(cases, i, one) check_case(one);
  json_decref(root);
}

// Of accuracy the interval is that of a binomial distribution.
static void intervals(void **state) {
  (void)state;
  static int32_t right[MOST], found[MOST];
  tarn__random random;
  tarn__random_init(&random, 3, 1);
  for (int i = 0; i < MOST; i++) {
    right[i] = (int32_t)tarn__random_below(&random, 2);
    found[i] = i % 5 == 0 ? 1 - right[i] : right[i];
  }
  tarn__agreement a = {.count = MOST, .classes = 2, .right_class = right, .found_class = found};
  tarn__agreement_interval first, second;
  assert_int_equal(tarn__agreement_open(&a), TARN_STATUS_OK);
  assert_int_equal(tarn__agreement_interval_of(&first, &a, tarn__agreement_accuracy, 1000, 7), TARN_STATUS_OK);
  assert_int_equal(tarn__agreement_interval_of(&second, &a, tarn__agreement_accuracy, 1000, 7), TARN_STATUS_OK);
  const double half = 1.96 * sqrt(0.8 * 0.2 / MOST);
  assert_true(fabs(first.value - 0.8) < 1e-12 && fabs(first.low - (0.8 - half)) < 0.005 &&
              fabs(first.high - (0.8 + half)) < 0.005);
  assert_true(first.low == second.low && first.high == second.high);
  tarn__agreement_close(&a);
}

// Answers of a model that has diverged: ranks come to an end.
static void ranks_of_no_numbers(void **state) {
  (void)state;
  static const float right[] = {1, 2, 3, 4}, found[] = {NAN, NAN, 1, NAN};
  tarn__agreement a = {.count = 4, .right_number = right, .found_number = found};
  assert_int_equal(tarn__agreement_open(&a), TARN_STATUS_OK);
  assert_true(fabs(tarn__agreement_spearman(&a, NULL)) <= 1.0);
  tarn__agreement_close(&a);
}

// A task whose measures find no memory says so.
static void memory_that_is_out(void **state) {
  (void)state;
  const tarn__task *const tasks[] = {tarn__tasks_classification[0], tarn__tasks_regression[0]};
  static const float numbers[] = {1, 2, 3, 4}, answers[] = {1, 3, 2, 4, 3, 5, 4, 6};
  static const int32_t labels[] = {0, 1, 1, 0};
  for (int i = 0; i < 2; i++) {
    static char names[] = "no|yes";
    const tarn_config config = {.head.labels = i == 0 ? names : NULL};
    const tarn__shard shard = {.pairs = 4};
    const tarn__batch batch = {.predictions = 4, .targets = labels, .values = numbers};
    tarn__task_tally tally = {.predictions = 4};
    double scores[TARN_MEASURES];
    assert_int_equal(tasks[i]->count(&tally, &config, &shard, NULL), TARN_STATUS_OK);
    tasks[i]->tally(&tally, &batch, answers);
    tarn__memory_fail_after(1);
    assert_int_equal(tarn__task_scores(scores, tasks[i], &tally), TARN_STATUS_MEMORY);
    tarn__memory_fail_after(0);
    assert_int_equal(tarn__task_scores(scores, tasks[i], &tally), TARN_STATUS_OK);
    tarn__free(tally.room);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden), cmocka_unit_test(intervals),
                                     cmocka_unit_test(ranks_of_no_numbers), cmocka_unit_test(memory_that_is_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Learning rates against the formulas, at the ends of warm-up and of the training.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "optim/schedule.h"

static void assert_near(double a, double b) { assert_true(fabs(a - b) <= 1e-15 + 1e-12 * fabs(b)); }

static void warms_up_linearly(void **state) {
  (void)state;
  tarn_config_train train = {.lr = 0.5, .warmup = 100, .max_updates = 1000, .schedule = TARN_SCHEDULE_CONSTANT};
  assert_near(tarn__schedule_rate(&train, 1), 0.005);
  assert_near(tarn__schedule_rate(&train, 50), 0.25);
  for (int s = 0; s < TARN_SCHEDULE_COUNT; s++) {
    train.schedule = (tarn_schedule)s;
    assert_near(tarn__schedule_rate(&train, 100), 0.5);
  }
}

static void falls_with_the_inverse_root(void **state) {
  (void)state;
  tarn_config_train train = {.lr = 0.5, .warmup = 100, .schedule = TARN_SCHEDULE_INVERSE_SQRT};
  assert_near(tarn__schedule_rate(&train, 400), 0.25);
  assert_near(tarn__schedule_rate(&train, 10000), 0.05);
  train.min_lr = 0.1;
  assert_near(tarn__schedule_rate(&train, 10000), 0.1);
  train.warmup = 0;
  assert_near(tarn__schedule_rate(&train, 1), 0.5);
  assert_near(tarn__schedule_rate(&train, 4), 0.25);
}

static void follows_half_a_cosine(void **state) {
  (void)state;
  tarn_config_train train = {
      .lr = 0.5, .min_lr = 0.1, .warmup = 100, .max_updates = 1100, .schedule = TARN_SCHEDULE_COSINE};
  assert_near(tarn__schedule_rate(&train, 600), 0.3);
  assert_near(tarn__schedule_rate(&train, 1100), 0.1);
  assert_near(tarn__schedule_rate(&train, 5000), 0.1);
  double before = 1.0;
  for (int64_t n = 100; n <= 1100; n += 50) {
    double rate = tarn__schedule_rate(&train, n);
    assert_true(rate < before);
    before = rate;
  }
}

static void follows_a_line(void **state) {
  (void)state;
  tarn_config_train train = {
      .lr = 0.5, .min_lr = 0.1, .warmup = 100, .max_updates = 1100, .schedule = TARN_SCHEDULE_LINEAR};
  assert_near(tarn__schedule_rate(&train, 100), 0.5);
  assert_near(tarn__schedule_rate(&train, 350), 0.4);
  assert_near(tarn__schedule_rate(&train, 600), 0.3);
  assert_near(tarn__schedule_rate(&train, 1100), 0.1);
  assert_near(tarn__schedule_rate(&train, 5000), 0.1);
}

static void stays_constant(void **state) {
  (void)state;
  tarn_config_train train = {.lr = 0.5, .schedule = TARN_SCHEDULE_CONSTANT};
  assert_near(tarn__schedule_rate(&train, 1), 0.5);
  assert_near(tarn__schedule_rate(&train, 1000000), 0.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(warms_up_linearly), cmocka_unit_test(falls_with_the_inverse_root),
                                     cmocka_unit_test(follows_half_a_cosine), cmocka_unit_test(follows_a_line),
                                     cmocka_unit_test(stays_constant)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

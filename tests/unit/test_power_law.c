// Fits of scaling laws (significance/power_law.h): exact numbers give the law back, noise is outvoted, ends are found.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "significance/power_law.h"

enum { MOST = 64 };

typedef struct sample {
  double log_x[2 * MOST], log_loss[MOST];
  tarn__law_points points;
} sample;

static void start(sample *s, size_t axes) { s->points = (tarn__law_points){s->log_x, s->log_loss, 0, axes, 1e-3}; }

static void add(sample *s, double x, double y, double loss) {
  const size_t n = s->points.count++;
  assert_true(n < MOST);
  s->log_x[n * s->points.axes] = log(x);
  if (s->points.axes > 1) s->log_x[n * 2 + 1] = log(y);
  s->log_loss[n] = log(loss);
}

static void near(double value, double wanted, double tolerance) {
  if (!(fabs(value - wanted) <= tolerance * fabs(wanted))) fail_msg("%.10g is not %.10g", value, wanted);
}

static void exact_numbers_give_the_law(void **state) {
  (void)state;
  static const double laws[][3] = {{8.5, 0.2, 2}, {400, 0.5, 1.7}, {3, 0.05, 0.4}, {1e6, 1.2, 3}};
  for (size_t l = 0; l < sizeof laws / sizeof *laws; l++) {
    sample s;
    tarn__law law;
    start(&s, 1);
    for (double x = 1e3; x < 1e8; x *= 8) add(&s, x, 0, laws[l][0] * pow(x, -laws[l][1]) + laws[l][2]);
    tarn__law_fit(&law, &s.points);
    near(exp(tarn__law_log_a(&law, 0)), laws[l][0], 1e-3);
    near(law.b[0], laws[l][1], 1e-3);
    near(exp(law.log_c), laws[l][2], 1e-3);
    assert_false(tarn__law_at_bound(&law));
    const double x = log(5e9), loss = tarn__law_at(&law, &x);
    near(exp(loss), laws[l][0] * pow(5e9, -laws[l][1]) + laws[l][2], 1e-3);
    near(tarn__law_inverse(&law, tarn__law_at(&law, (const double[]){log(2e5)})), log(2e5), 1e-6);
    assert_true(isnan(tarn__law_inverse(&law, law.log_c - 0.01)));
  }
}

// Hoffmann et al.'s law of Chinchilla, at sizes and tokens like theirs.
static void two_axes(void **state) {
  (void)state;
  sample s;
  tarn__law law;
  start(&s, 2);
  for (double n = 4.4e7; n < 2e10; n *= 4)
    for (double d = 2e9; d < 5e11; d *= 4) add(&s, n, d, 1.69 + 406.4 * pow(n, -0.34) + 410.7 * pow(d, -0.28));
  tarn__law_fit(&law, &s.points);
  near(law.b[0], 0.34, 5e-3);
  near(law.b[1], 0.28, 5e-3);
  near(exp(law.log_c), 1.69, 5e-3);
  near(exp(tarn__law_at(&law, (const double[]){log(7e10), log(1.4e12)})),
       1.69 + 406.4 * pow(7e10, -0.34) + 410.7 * pow(1.4e12, -0.28), 1e-3);
}

// One wild run among twenty moves a fit by squares, and this one hardly.
static void outliers_count_little(void **state) {
  (void)state;
  sample s;
  tarn__law law, squares;
  tarn__random random;
  tarn__random_init(&random, 7, 0);
  start(&s, 1);
  for (double x = 1e4; x < 2e7; x *= 4)
    for (int seed = 0; seed < 4; seed++)
      add(&s, x, 0, (20 * pow(x, -0.3) + 2) * exp(0.002 * tarn__random_normal(&random)));
  s.log_loss[s.points.count - 1] += 0.3;
  tarn__law_fit(&law, &s.points);
  s.points.huber = 10;
  tarn__law_fit(&squares, &s.points);
  near(law.b[0], 0.3, 0.1);
  assert_true(fabs(squares.b[0] - 0.3) > 3 * fabs(law.b[0] - 0.3));
}

// A refit from the fit's own values finds what a fit from many first values finds.
static void refits_agree(void **state) {
  (void)state;
  sample s;
  tarn__law law, again;
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  start(&s, 1);
  for (double x = 1e4; x < 2e7; x *= 4)
    for (int seed = 0; seed < 3; seed++) add(&s, x, 0, 20 * pow(x, -0.3) + 2);
  tarn__law_fit(&law, &s.points);
  for (int round = 0; round < 20; round++) {
    sample drawn = s;
    drawn.points.log_x = drawn.log_x, drawn.points.log_loss = drawn.log_loss;
    for (size_t i = 0; i < s.points.count; i++) drawn.log_loss[i] += 0.004 * tarn__random_normal(&random);
    tarn__law whole;
    again = law;
    tarn__law_refit(&again, &drawn.points);
    tarn__law_fit(&whole, &drawn.points);
    for (double x = 1e4; x < 1e9; x *= 10) {
      const double log_x = log(x);
      near(tarn__law_at(&again, &log_x), tarn__law_at(&whole, &log_x), 0.01);
    }
  }
}

// Losses that do not fall, and that fall at once, have no exponent within the range.
static void ends_are_told(void **state) {
  (void)state;
  sample s;
  tarn__law law;
  start(&s, 1);
  for (double x = 1; x < 2000; x *= 4) add(&s, x, 0, 5 + 0.1 * log(x));
  tarn__law_fit(&law, &s.points);
  assert_true(tarn__law_at_bound(&law) || fabs(tarn__law_at(&law, s.log_x) - log(5.3)) < 0.1);
  start(&s, 1);
  for (double x = 1; x < 2000; x *= 4) add(&s, x, 0, 1e12 * pow(x, -6));
  tarn__law_fit(&law, &s.points);
  assert_true(tarn__law_at_bound(&law));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exact_numbers_give_the_law), cmocka_unit_test(two_axes),
                                     cmocka_unit_test(outliers_count_little), cmocka_unit_test(refits_agree),
                                     cmocka_unit_test(ends_are_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Moments in BF16: rounded at random without bias, from numbers that are independent of each other, the same for any
// number of threads and near the reference; for every instruction set, or on the device of TARN_DEVICE.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "kernels/kernel_check.h"
#include "list_optimiser.h"

static const tarn__adam_options options = {1e-3, 0.9, 0.999, 1e-8, 0.01, true, 7};

// A parameter with moments in BF16, all zero.
static tarn__param param_open(int64_t rows, int64_t cols, uint32_t number) {
  const size_t n = (size_t)(rows * cols);
  tarn__param p = {.name = "p", .rows = rows, .cols = cols, .trained = true, .dtype = TARN__BF16};
  p.training = (tarn__param_training){.master = check_shared(n * sizeof(float)),
                                      .grad = check_shared(n * sizeof(float)),
                                      .grad_written = true,
                                      .moment1 = check_shared(n * sizeof(uint16_t)),
                                      .moment2 = check_shared(n * sizeof(uint16_t)),
                                      .moments = TARN__BF16,
                                      .number = number};
  p.value = check_shared(n * sizeof(uint16_t));
  return p;
}

static void param_close(tarn__param *p) {
  check_shared_free(p->value);
  check_shared_free(p->training.master);
  check_shared_free(p->training.grad);
  check_shared_free(p->training.moment1);
  check_shared_free(p->training.moment2);
}

static void fill_moments(tarn__param *p, float moment1, float moment2) {
  for (int64_t i = 0; i < p->rows * p->cols; i++) {
    ((uint16_t *)p->training.moment1)[i] = tarn__bf16_from_f32(moment1);
    ((uint16_t *)p->training.moment2)[i] = tarn__bf16_from_f32(moment2);
  }
}

static void fill_gradient(tarn__param *p, float value) {
  for (int64_t i = 0; i < p->rows * p->cols; i++) ((float *)p->training.grad)[i] = value;
}

static double mean(const tarn__param *p, const uint16_t *moments) {
  const int64_t n = p->rows * p->cols;
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) sum += (double)tarn__bf16_to_f32(moments[i]);
  return sum / (double)n;
}

static void assert_unbiased(double found, double expected, double deviation, const char *what) {
  if (!(fabs(found - expected) < 5.0 * deviation))
    fail_msg("%s: the mean is %.9g, expected %.9g +- %.2g", what, found, expected, deviation);
}

// One update from moments and a gradient that lead between two neighbours of BF16: the mean over all elements is the
// value in between, to five standard deviations. To the nearest it would be one of the neighbours, up to half of their
// distance away: 256 times as far.
static void one_update_is_unbiased(void **state) {
  (void)state;
  enum { ROWS = 257, COLS = 513 };
  static const float gradients[] = {0.5f, -0.25f, 0.03f, 1.0f};
  for (size_t k = 0; k < sizeof gradients / sizeof *gradients; k++) {
    tarn__param p = param_open(ROWS, COLS, 3), *list[] = {&p};
    const double g = (double)gradients[k], m = 0.25, v = 0.0625, n = ROWS * COLS;
    fill_moments(&p, (float)m, (float)v);
    fill_gradient(&p, (float)g);
    step_list(check_device(), list, 1, &options, 5, 1.0, 2);
    const double m_new = m + 0.1 * (g - m), v_new = 0.999 * v + 0.001 * g * g;
    // The neighbours are at most 2^-7 of the value apart, and half of that is the largest deviation of one of two.
    assert_unbiased(mean(&p, p.training.moment1), m_new, fabs(m_new) / 256.0 / sqrt(n), "first moment");
    assert_unbiased(mean(&p, p.training.moment2), v_new, v_new / 256.0 / sqrt(n), "second moment");
    for (int64_t i = 0; i < 40; i++) bits_add_floats(p.training.master + i, 1);
    param_close(&p);
  }
}

// A thousand updates with one gradient: the second moment comes to where fp32 takes it, though each update changes it
// by less than half of its resolution from a fifth of the way on.
static void second_moments_move(void **state) {
  (void)state;
  tarn__param p = param_open(64, 80, 1), *list[] = {&p};
  fill_gradient(&p, 0.3f);
  enum { STEPS = 1000 };
  for (int step = 1; step <= STEPS; step++) step_list(check_device(), list, 1, &options, step, 1.0, 2);
  const double expected = (1.0 - pow(0.999, STEPS)) * 0.09, found = mean(&p, p.training.moment2);
  if (!(fabs(found / expected - 1.0) < 0.01)) fail_msg("second moment %.6g, expected %.6g", found, expected);
  param_close(&p);
}

// Whether element i was rounded up.
static bool is_up(const uint16_t *moments, int64_t i, double exact) {
  return (double)tarn__bf16_to_f32(moments[i]) > exact;
}

// How often elements agree on their direction, as a share; of independent ones with an even chance one half.
static double agreement(const uint16_t *a, double a_exact, const uint16_t *b, double b_exact, int64_t n) {
  int64_t same = 0;
  for (int64_t i = 0; i < n; i++) same += is_up(a, i, a_exact) == is_up(b, i, b_exact);
  return (double)same / (double)n;
}

static void assert_even(double share, int64_t n, const char *what) {
  if (!(fabs(share - 0.5) < 5.0 * 0.5 / sqrt((double)n))) fail_msg("%s: %.4f agree", what, share);
}

// Values half-way between two neighbours: moments, updates, parameters, seeds and neighbouring elements agree by
// chance.
static void numbers_are_independent(void **state) {
  (void)state;
  enum { ROWS = 128, COLS = 512, N = ROWS * COLS, VARIANTS = 4 };
  // m = 0.9 * 0 + 0.1 g and v = 0.001 g^2 (from 0) lie half-way for these numbers: 1 + 2^-8 in units of a power of two.
  const float first = 1.00390625f / 0.1f;
  static const char *const what[VARIANTS] = {"one more time", "another update", "another parameter", "another seed"};
  tarn__param p[VARIANTS];
  double exact = 0.0;
  for (int k = 0; k < VARIANTS; k++) {
    tarn__adam_options o = options;
    o.seed += k == 3;
    p[k] = param_open(ROWS, COLS, k == 2 ? 9 : 4);
    tarn__param *list[] = {&p[k]};
    fill_gradient(&p[k], first);
    step_list(check_device(), list, 1, &o, k == 1 ? 6 : 5, 1.0, 1 + k % 2);
    exact = 1.00390625;
    const double share = agreement(p[0].training.moment1, exact, p[k].training.moment1, exact, N);
    if (k == 0)
      assert_true(share == 1.0);
    else
      assert_even(share, N, what[k]);
  }
  assert_even(agreement(p[0].training.moment1, exact, (uint16_t *)p[0].training.moment1 + 1, exact, N - 1), N - 1,
              "neighbours");
  assert_even(agreement(p[0].training.moment1, exact, (uint16_t *)p[0].training.moment1 + COLS, exact, N - COLS),
              N - COLS, "rows");
  // The second moment, whose value is (1.00390625 / 0.1)^2 / 1000, is rounded up as often as its place between its
  // neighbours says, whichever way the first one went.
  const double v = (double)first * (double)first * 0.001;
  int64_t up = 0, both = 0, first_up = 0;
  for (int64_t i = 0; i < N; i++) {
    const bool a = is_up(p[0].training.moment1, i, exact), b = is_up(p[0].training.moment2, i, v);
    up += b;
    first_up += a;
    both += a && b;
  }
  const double chance = (double)up * (double)first_up / N;
  if (!(fabs((double)both - chance) < 5.0 * sqrt(N) / 4.0))
    fail_msg("both up %lld, by chance %.0f", (long long)both, chance);
  for (int k = 0; k < VARIANTS; k++) param_close(&p[k]);
}

static void random_gradient(tarn__param *p, int step) {
  tarn__random random;
  tarn__random_init(&random, 7, (uint32_t)step);
  for (int64_t i = 0; i < p->rows * p->cols; i++)
    ((float *)p->training.grad)[i] = (float)(0.1 * tarn__random_normal(&random));
}

static void threads_give_equal_bits(void **state) {
  (void)state;
  tarn__param p[3];
  for (int k = 0; k < 3; k++) {
    p[k] = param_open(211, 317, 2);
    tarn__param *list[] = {&p[k]};
    for (int step = 1; step <= 3; step++) {
      random_gradient(&p[k], step);
      step_list(check_device(), list, 1, &options, step, 1.0, k + 1);
    }
    const size_t n = (size_t)(p[k].rows * p[k].cols);
    assert_memory_equal(p[0].training.master, p[k].training.master, n * sizeof(float));
    assert_memory_equal(p[0].training.moment1, p[k].training.moment1, n * sizeof(uint16_t));
    assert_memory_equal(p[0].training.moment2, p[k].training.moment2, n * sizeof(uint16_t));
  }
  for (int64_t i = 0; i < p[0].rows * p[0].cols; i++) {
    const float moments[] = {tarn__bf16_to_f32(((const uint16_t *)p[0].training.moment1)[i]),
                             tarn__bf16_to_f32(((const uint16_t *)p[0].training.moment2)[i])};
    bits_add_floats(moments, 2);
  }
  bits_add_floats(p[0].training.master, (size_t)(p[0].rows * p[0].cols));
  for (int k = 0; k < 3; k++) param_close(&p[k]);
}

// The numbers are the same, so that only an element whose fp32 moment differs in its last bits may go the other way.
static void as_the_reference(void **state) {
  (void)state;
  const tarn__device *const devices[] = {check_device(), &tarn__device_reference};
  enum { ROWS = 67, COLS = 131, N = ROWS * COLS };
  tarn__param p[2];
  for (int d = 0; d < 2; d++) {
    p[d] = param_open(ROWS, COLS, 5);
    tarn__param *list[] = {&p[d]};
    p[d].training.used_rows = check_shared(ROWS);
    for (int step = 1; step <= 4; step++) {
      random_gradient(&p[d], step);
      for (int64_t r = 0; r < ROWS; r++) p[d].training.used_rows[r] = (r + step) % 3 > 0;
      step_list(devices[d], list, 1, &options, step, 0.5, 2);
    }
  }
  int64_t other = 0;
  for (int64_t i = 0; i < N; i++) {
    other += ((uint16_t *)p[0].training.moment1)[i] != ((uint16_t *)p[1].training.moment1)[i];
    other += ((uint16_t *)p[0].training.moment2)[i] != ((uint16_t *)p[1].training.moment2)[i];
    assert_true(fabs((double)p[0].training.master[i] - (double)p[1].training.master[i]) < 1e-4);
  }
  if (other > N / 100) fail_msg("%lld of %d moments differ", (long long)other, 2 * N);
  for (int d = 0; d < 2; d++) {
    check_shared_free(p[d].training.used_rows);
    param_close(&p[d]);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_update_is_unbiased), cmocka_unit_test(second_moments_move),
                                     cmocka_unit_test(numbers_are_independent),
                                     cmocka_unit_test(threads_give_equal_bits), cmocka_unit_test(as_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

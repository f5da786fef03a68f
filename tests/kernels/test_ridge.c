// Ridge regression on the device under test: sums, samples taken from rows, and Cholesky's factorisation, against the
// reference; for every instruction set, or on the device of TARN_DEVICE.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "device/transfer.h"
#include "kernels/kernel_check.h"
#include "optim/ridge.h"

enum { DEVICES = 2 };
static const tarn__device *device_of(int d) { return d == 0 ? check_device() : &tarn__device_reference; }

static void assert_close(double found, double expected, double scale, const char *what, int64_t i, int64_t j) {
  if (!(fabs(found - expected) <= 1e-12 * (fabs(expected) + scale)))
    fail_msg("%s %lld, %lld: %.17g, expected %.17g", what, (long long)i, (long long)j, found, expected);
}

// Below the diagonal there is nothing to compare.
static void assert_same_sums(tarn__ridge ridge[DEVICES], double scale) {
  check_ok(tarn__device_synchronise(check_device()));
  assert_int_equal(ridge[0].count, ridge[1].count);
  for (int64_t i = 0; i <= ridge->inputs; i++)
    for (int64_t j = i < ridge->inputs ? i : 0; j < ridge->width; j++) {
      const int64_t at = i * ridge->width + j;  // the totals lie behind the products
      assert_close(ridge[0].products[at], ridge[1].products[at], scale, "sum", i, j);
    }
}

static void solutions_are_near(tarn__ridge ridge[DEVICES], double penalty) {
  const size_t n = (size_t)ridge->inputs, m = (size_t)ridge->outputs;
  double *w[DEVICES], *b[DEVICES], used[DEVICES];
  for (int d = 0; d < DEVICES; d++) {
    w[d] = check_alloc(n * m, sizeof(double));
    b[d] = check_alloc(m, sizeof(double));
    check_ok(tarn__ridge_solve(w[d], b[d], &used[d], &ridge[d], penalty));
  }
  assert_true(used[0] == used[1]);
  check_close_to(w[0], w[1], n * m, 1e-9, "ridge", "weights", 0);
  check_close_to(b[0], b[1], m, 1e-9, "ridge", "bias", 0);
  for (int d = 0; d < DEVICES; d++) {
    tarn__free(w[d]);
    tarn__free(b[d]);
  }
}

static const int64_t inputs[] = {1, 5, 64, 130}, outputs[] = {1, 3, 9, 70};
enum { SHAPES = sizeof inputs / sizeof *inputs, SAMPLES = 150 };

static void samples_with_values(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++) {
    tarn__ridge ridge[DEVICES];
    tarn__random random;
    double x[256], y[256];
    tarn__random_init(&random, 3, (uint32_t)s);
    for (int d = 0; d < DEVICES; d++) check_ok(tarn__ridge_open(&ridge[d], device_of(d), inputs[s], outputs[s]));
    for (int t = 0; t < SAMPLES; t++) {
      for (int64_t i = 0; i < inputs[s]; i++) x[i] = tarn__random_normal(&random) + 0.3;
      for (int64_t o = 0; o < outputs[s]; o++) y[o] = tarn__random_normal(&random) - x[o % inputs[s]];
      for (int d = 0; d < DEVICES; d++) check_ok(tarn__ridge_add(&ridge[d], x, y));
    }
    solutions_are_near(ridge, 0.5);
    assert_same_sums(ridge, SAMPLES);
    for (int d = 0; d < DEVICES; d++) tarn__ridge_close(&ridge[d]);
  }
}

// Rows of a matrix, in calls that do not divide it evenly, the first rows left out; some classes come often.
static void samples_with_classes(void **state) {
  (void)state;
  for (int s = 0; s < 2 * SHAPES; s++) {
    const int64_t n = inputs[s / 2], m = outputs[s / 2];
    const bool bf16 = s % 2 != 0;
    tarn__ridge ridge[DEVICES];
    tarn__random random;
    int32_t classes[SAMPLES];
    float *floats = check_shared((size_t)(n * (SAMPLES + 3)) * sizeof *floats);
    uint16_t *halves = check_shared((size_t)(n * (SAMPLES + 3)) * sizeof *halves);
    tarn__random_init(&random, 4, (uint32_t)s);
    for (int64_t i = 0; i < n * (SAMPLES + 3); i++) {
      halves[i] = tarn__bf16_from_f32((float)tarn__random_normal(&random));
      floats[i] = tarn__bf16_to_f32(halves[i]);
    }
    for (int t = 0; t < SAMPLES; t++) classes[t] = (int32_t)(t % 3 ? tarn__random_below(&random, (uint64_t)m) : 0);
    for (int d = 0; d < DEVICES; d++) {
      const bool halved = bf16 && d == 0;  // the reference has no bf16
      check_ok(tarn__ridge_open_classes(&ridge[d], device_of(d), n, m));
      for (int t = 0, now; t < SAMPLES; t += now) {
        now = t == 0 ? 37 : SAMPLES - t;
        check_ok(tarn__ridge_add_rows(&ridge[d], halved ? (void *)halves : (void *)floats,
                                      halved ? TARN__BF16 : TARN__F32, t + 3, now, classes + t));
      }
    }
    solutions_are_near(ridge, 0.5);
    assert_same_sums(ridge, SAMPLES);
    for (int d = 0; d < DEVICES; d++) tarn__ridge_close(&ridge[d]);
    check_shared_free(floats);
    check_shared_free(halves);
  }
}

// Blocks that are full and one that is not; below the diagonal there is what nobody may read.
static void matrices_are_factored(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 63, 64, 65, 129, 200};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t n = sizes[s];
    tarn__random random;
    double *u = check_alloc((size_t)(n * n), sizeof *u), *a = check_shared((size_t)(n * n) * sizeof *a);
    tarn__random_init(&random, 5, (uint32_t)n);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i; j < n; j++) u[i * n + j] = i == j ? 2.0 + 0.1 * i : 0.3 * tarn__random_normal(&random);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        a[i * n + j] = j < i ? NAN : 0.0;
        for (int64_t k = 0; j >= i && k <= i; k++) a[i * n + j] += u[k * n + i] * u[k * n + j];
      }
    bool done = false;
    check_ok(check_device()->type->cholesky(check_device(), &done, a, n, 1e-3));
    assert_true(done);
    check_ok(tarn__device_synchronise(check_device()));
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i; j < n; j++) assert_close(a[i * n + j], u[i * n + j], 1.0, "factor", i, j);
    tarn__free(u);
    check_shared_free(a);
  }
}

// In the first block and in a later one.
static void bad_pivots_are_told(void **state) {
  (void)state;
  enum { SIZE = 90 };
  static const int bad[] = {0, 17, 64, 89};
  static const double values[] = {0.0, -1.0, NAN, 0.5};
  double *a = check_shared(SIZE * SIZE * sizeof *a);
  for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      for (int i = 0; i < SIZE * SIZE; i++) a[i] = i / SIZE == i % SIZE ? 4.0 : 0.0;
      a[bad[b] * SIZE + bad[b]] = values[v];
      bool done = true;
      check_ok(check_device()->type->cholesky(check_device(), &done, a, SIZE, 0.5));
      assert_false(done);
    }
  check_shared_free(a);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples_with_values), cmocka_unit_test(samples_with_classes),
                                     cmocka_unit_test(matrices_are_factored), cmocka_unit_test(bad_pivots_are_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

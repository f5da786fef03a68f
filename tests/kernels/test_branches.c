// ScaleNorm, DeepNorm's factor on x, and the ops scale and stand_in: fast kernels against the reference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/branch_check.h"
#include "ops/stand_in.h"

static void scale_norm(void **state) {
  (void)state;
  norm_check_sizes(TARN__NORM_SCALE);
  norm_check_widths(TARN__NORM_SCALE);
  norm_check_parts(TARN__NORM_SCALE);
  norm_check_chains(TARN__NORM_SCALE);
  norm_check_evaluation(TARN__NORM_SCALE);
}

static void deepnorm(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof deep_cases / sizeof *deep_cases; i++) {
    check_kernels(deep_build, &deep_cases[i].s, deep_cases[i].name, 1e-5, 0.03);
    check_kernels_mode(deep_build, &deep_cases[i].s, deep_cases[i].name, false, 1e-5, 0.03);
  }
}

static void branches(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof branch_cases / sizeof *branch_cases; i++)
    check_kernels(branch_build, &branch_cases[i].s, branch_cases[i].name, 1e-5, 0.015);
}

static void shares(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof share_cases / sizeof *share_cases; i++)
    check_kernels(share_build, &share_cases[i], "shares", 1e-5, 0.03);
}

// Neither number, and one that is none, are refused.
static void bad_numbers(void **state) {
  (void)state;
  static float x[24], value[24];
  tarn__param wide = {.name = "gate", .rows = 1, .cols = 24, .value = value};
  for (int i = 0; i < 2; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__scale(&graph, tarn__graph_external(&graph, TARN__F32, 1, 24, x, "x"), i == 0 ? NULL : &wide, NULL);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

// Approximate gradients have no gradient of their own: what their ops compute is written down once more.
static void stand_ins(void **state) {
  (void)state;
  enum { ROWS = 31, COLS = 37, N = ROWS * COLS };
  for (int half = 0; half < 2; half++) {
    const tarn__dtype dtype = half ? TARN__BF16 : TARN__F32;
    void *data[2] = {check_shared(N * sizeof(float)), check_shared(N * sizeof(float))};
    for (int i = 0; i < N; i++) {
      check_store(data[0], dtype, (size_t)i, (i * 37 % 64) / 16.0 - 1.5);
      check_store(data[1], dtype, (size_t)i, (i * 11 % 32) / 8.0 - 1.0);
    }
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), dtype, false, 2);
    tarn__tensor *a = tarn__graph_external(&graph, dtype, ROWS, COLS, data[0], "approximation"), *error;
    tarn__tensor *b = tarn__graph_external(&graph, dtype, ROWS, COLS, data[1], "truth");
    const tarn__tensor *sums = tarn__stand_in_measure(&graph, a, b, &error);
    tarn__tensor *sum = tarn__stand_in_add(&graph, tarn__stand_in_copy(&graph, a), b, 0.25);
    error->keep = sum->keep = true;
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = 2, .spread = true}));
    check_ok(tarn__device_synchronise(check_device()));
    double expected[3] = {0}, errors[N], found[N], added[N], wanted[N];
    for (size_t i = 0; i < N; i++) {
      const double x = check_load(data[0], dtype, i), y = check_load(data[1], dtype, i);
      expected[0] += x * y, expected[1] += x * x, expected[2] += y * y;
      wanted[i] = x + 0.25 * y;
      added[i] = check_load(sum->data, dtype, i);
      found[i] = check_load(error->data, dtype, i);
      errors[i] = x - y;
    }
    for (int i = 0; i < N; i++) errors[i] *= 2.0 / expected[2];
    check_close_to(sums->data, expected, 3, 1e-6, "stand_in_measure", "sum", 0);
    check_close_to(found, errors, N, half ? 0.01 : 1e-6, "stand_in_measure", "error", 0);
    check_close_to(added, wanted, N, half ? 0.01 : 1e-6, "stand_in_add", "output", 0);
    check_shared_free(workspace);
    for (int i = 0; i < 2; i++) check_shared_free(data[i]);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scale_norm),  cmocka_unit_test(deepnorm),
                                     cmocka_unit_test(branches),    cmocka_unit_test(shares),
                                     cmocka_unit_test(bad_numbers), cmocka_unit_test(stand_ins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

// ScaleNorm, DeepNorm's factor on x, and the op scale: fast kernels against the reference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/branch_check.h"

static void scale_norm(void **state) {
  (void)state;
  norm_check_sizes(TARN__NORM_SCALE);
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

// Neither number, and one that is none, are refused.
static void bad_numbers(void **state) {
  (void)state;
  static float x[24], value[24];
  tarn__param wide = {.name = "gate", .rows = 1, .cols = 24, .value = value};
  for (int i = 0; i < 2; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__scale(&graph, tarn__graph_external(&graph, TARN__F32, 1, 24, x, "x"), i == 0 ? NULL : &wide, NULL);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scale_norm), cmocka_unit_test(deepnorm),
                                     cmocka_unit_test(branches), cmocka_unit_test(bad_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

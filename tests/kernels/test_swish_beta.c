// Swish with beta: kernels against the reference; what does not fit is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/swish_check.h"

static void against_reference(void **state) {
  (void)state;
  static const struct { int64_t rows, cols; } sizes[] = {{1, 1}, {3, 17}, {65, 48}, {0, 8}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 4; form++) {
      const swish_shape s = {sizes[i].rows, sizes[i].cols, form % 2, form / 2, form != 2 || i == 1, 1 + (form == 3)};
      check_kernels(swish_build, &s, "swish with beta", 3e-5, 0.03);
    }
}

static void refused(void **state) {
  (void)state;
  static float memory[6];
  for (int what = 0; what < 2; what++) {
    tarn__param beta = {.name = "beta", .rows = 1, .cols = what ? 2 : 1, .value = memory};
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 2, 3, memory, "x");
    tarn__swish_beta(&graph, x, NULL, 1.0, &beta, what == 0);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_reference), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

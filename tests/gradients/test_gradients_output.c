// The gradients of the output loss against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const double grad_scale = 1.0;

static void build(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t targets[] = {3, 0, 10, 3, 7};
  const double *smoothing = spec;
  tarn__tensor *x = check_input(c, graph, 5, 6, 1.0, true);
  tarn__param *table = check_param(c, 11, 6, 0.5, true), *bias = check_param(c, 1, 11, 0.5, true);
  tarn__param *weight = check_param(c, 6, 6, 0.5, true);
  tarn__tensor *y = tarn__linear(graph, x, weight, NULL, TARN__IDENTITY);
  tarn__tensor *wanted = check_ints(c, graph, targets, 5);
  check_loss(c, tarn__output_loss(graph, y, table, bias, wanted, *smoothing, grad_scale));
}

static void plain(void **state) {
  (void)state;
  double smoothing = 0.0;
  check_gradients(build, &smoothing, "output loss", 1e-8);
}

static void smoothed(void **state) {
  (void)state;
  double smoothing = 0.1;
  check_gradients(build, &smoothing, "smoothed output loss", 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(smoothed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

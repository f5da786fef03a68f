// The gradients of a mixture of softmaxes, and of a weight that is read transposed, against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/linear_transposed.h"
#include "ops/output_mixture.h"

static void build(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t targets[] = {3, 0, 10, 3, 7};
  const double *smoothing = spec;
  tarn__tensor *x = check_input(c, graph, 5, 6, 1.0, true);
  const tarn__mixture m = {
      .h = tarn__tanh(graph, tarn__linear(graph, x, check_param(c, 12, 6, 0.5, true), NULL, TARN__IDENTITY)),
      .prior = tarn__linear(graph, x, check_param(c, 3, 6, 0.5, true), NULL, TARN__IDENTITY),
      .table = check_param(c, 11, 4, 0.8, true),
      .bias = check_param(c, 1, 11, 0.5, true)};
  check_loss(c, tarn__mixture_loss(graph, &m, check_ints(c, graph, targets, 5), *smoothing, 1.0));
}

static void plain(void **state) {
  (void)state;
  const double smoothing = 0.0;
  check_gradients(build, &smoothing, "mixture loss", 1e-8);
}

static void smoothed(void **state) {
  (void)state;
  const double smoothing = 0.1;
  check_gradients(build, &smoothing, "smoothed mixture loss", 1e-8);
}

// x has a second use, and the weight is read both ways.
static void build_transposed(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  tarn__param *weight = check_param(c, 6, 4, 0.5, true);
  tarn__tensor *x = tarn__linear(graph, check_input(c, graph, 5, 4, 1.0, true), weight, NULL, TARN__IDENTITY);
  tarn__tensor *y = tarn__linear_transposed(graph, x, weight);
  check_output(c, y);
  check_output(c, tarn__tanh(graph, x));
}

static void transposed(void **state) {
  (void)state;
  check_gradients(build_transposed, NULL, "linear transposed", 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(smoothed), cmocka_unit_test(transposed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

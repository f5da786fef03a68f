// The gradients of what a head of classification or regression is made of, against finite differences: the mean of a
// sentence, tanh, squared error.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};
enum { ROWS = 9, SENTENCES = 4, D = 6 };
static const double grad_scale = 1.0;

// x has another reader, so its gradient is added to one that is there.
static void build_mean(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  check_output(c, tarn__sentence_mean(graph, x, check_ints(c, graph, offsets, SENTENCES + 1)));
  check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
}

static void build_tanh(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.5, true);
  check_output(c, tarn__tanh(graph, x));
  check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
}

static void build_error(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  static const float values[] = {0.5f, -2.0f, 3.0f};
  int32_t bits[3];
  memcpy(bits, values, sizeof bits);
  tarn__tensor *x = check_input(c, graph, 3, D, 1.0, true), *numbers;
  tarn__param *weight = check_param(c, 1, D, 0.5, true), *bias = check_param(c, 1, 1, 0.5, true);
  tarn__tensor *wanted = check_ints(c, graph, bits, 3);
  tarn__tensor *y = tarn__linear(graph, x, check_param(c, D, D, 0.5, true), NULL, TARN__IDENTITY);
  check_loss(c, tarn__squared_error(graph, tarn__tanh(graph, y), weight, bias, wanted, grad_scale, &numbers));
}

static void mean(void **state) {
  (void)state;
  check_gradients(build_mean, NULL, "sentence mean", 1e-8);
}

static void tangent(void **state) {
  (void)state;
  check_gradients(build_tanh, NULL, "tanh", 1e-8);
}

static void error(void **state) {
  (void)state;
  check_gradients(build_error, NULL, "squared error", 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mean), cmocka_unit_test(tangent), cmocka_unit_test(error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

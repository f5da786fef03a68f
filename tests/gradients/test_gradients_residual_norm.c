#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  bool norm, use_sum, use_y, trained;
  double dropout;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, 7, 12, 1.0, true), *branch = check_input(c, graph, 7, 12, 1.0, true);
  tarn__param *gain = s->norm ? check_param_around(c, 1, 12, 1.0, 0.2, s->trained) : NULL;
  tarn__param *bias = s->norm ? check_param(c, 1, 12, 0.5, s->trained) : NULL;
  tarn__residual_out out = tarn__residual_norm(graph, x, branch, s->dropout, gain, bias);
  if (s->use_sum) check_output(c, out.sum);
  if (s->use_y) check_output(c, out.y);
}

static void one(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shape s;
  } cases[] = {
      {"post-norm", {true, false, true, true, 0.3}},      {"post-norm, no dropout", {true, false, true, true, 0.0}},
      {"pre-norm", {true, true, true, true, 0.3}},        {"pre-norm, frozen", {true, true, true, false, 0.3}},
      {"sum alone", {false, true, false, false, 0.3}},    {"sum alone, no dropout", {false, true, false, false, 0.0}},
      {"norm not used", {true, true, false, false, 0.3}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_gradients(build, &cases[i].s, cases[i].name, 1e-7);
}

// Norms with shared gain and bias, whose gradients add up, and inputs whose gradients come from several nodes.
static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, 7, 12, 1.0, true), *branch = check_input(c, graph, 7, 12, 1.0, true);
  tarn__param *gain = check_param_around(c, 1, 12, 1.0, 0.2, true), *bias = check_param(c, 1, 12, 0.5, true);
  tarn__tensor *first = tarn__residual_norm(graph, x, NULL, 0.0, gain, bias).y;
  tarn__residual_out second = tarn__residual_norm(graph, x, first, s->dropout, gain, bias);
  tarn__residual_out third = tarn__residual_norm(graph, second.sum, branch, s->dropout, gain, bias);
  tarn__tensor *fourth = tarn__residual_norm(graph, third.sum, branch, s->dropout, NULL, NULL).sum;
  check_output(c, tarn__residual_norm(graph, second.y, fourth, s->dropout, gain, bias).y);
  check_output(c, third.y);
}

static void chain(void **state) {
  (void)state;
  shape s = {true, true, true, true, 0.25};
  check_gradients(build_chain, &s, "chain", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one), cmocka_unit_test(chain)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

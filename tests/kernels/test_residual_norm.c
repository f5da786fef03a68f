#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, cols;
  bool branch, norm, use_sum, use_y;
  double dropout;
  bool x_grad, branch_grad, trained;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
  tarn__tensor *branch = s->branch ? check_input(c, graph, s->rows, s->cols, 1.0, s->branch_grad) : NULL;
  tarn__param *gain = s->norm ? check_param_around(c, 1, s->cols, 1.0, 0.2, s->trained) : NULL;
  tarn__param *bias = s->norm ? check_param(c, 1, s->cols, 0.5, s->trained) : NULL;
  tarn__residual_out out = tarn__residual_norm(graph, x, branch, s->dropout, gain, bias);
  if (s->use_sum) check_output(c, out.sum);
  if (s->use_y) check_output(c, out.y);
}

static void sizes(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 2, 15, 17, 257}, cols[] = {8, 24, 100, 136, 512};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
      char name[80];
      snprintf(name, sizeof name, "%lld x %lld", (long long)rows[r], (long long)cols[k]);
      shape post = {rows[r], cols[k], true, true, false, true, 0.3, true, true, true};
      check_kernels(build, &post, name, 1e-5, 0.015);
      shape pre = {rows[r], cols[k], true, true, true, true, 0.1, true, true, true};
      check_kernels(build, &pre, name, 1e-5, 0.015);
    }
}

static void parts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shape s;
  } cases[] = {
      {"norm alone", {33, 100, false, true, false, true, 0.0, true, false, true}},
      {"frozen norm alone", {33, 100, false, true, false, true, 0.0, true, false, false}},
      {"trained norm of data", {33, 100, false, true, false, true, 0.0, false, false, true}},
      {"sum alone", {33, 100, true, false, true, false, 0.3, true, true, false}},
      {"sum alone without dropout", {33, 100, true, false, true, false, 0.0, true, true, false}},
      {"sum alone, branch", {33, 100, true, false, true, false, 0.3, false, true, false}},
      {"sum alone, x", {33, 100, true, false, true, false, 0.3, true, false, false}},
      {"no dropout", {33, 100, true, true, false, true, 0.0, true, true, true}},
      {"frozen, branch alone", {33, 100, true, true, false, true, 0.5, false, true, false}},
      {"frozen, x alone", {33, 100, true, true, true, true, 0.5, true, false, false}},
      {"y unused", {33, 100, true, true, true, false, 0.2, true, true, false}},
      {"no rows", {0, 24, true, true, true, true, 0.2, true, true, true}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_kernels(build, &cases[i].s, cases[i].name, 1e-5, 0.015);
}

// The sum as input of a second norm: gradients arrive from two sides, in place.
static void build_twice(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, true);
  tarn__tensor *branch = check_input(c, graph, s->rows, s->cols, 1.0, true);
  tarn__param *gain = check_param_around(c, 1, s->cols, 1.0, 0.2, true);
  tarn__param *bias = check_param(c, 1, s->cols, 0.5, true);
  tarn__tensor *first = tarn__residual_norm(graph, x, NULL, 0.0, gain, bias).y;
  tarn__residual_out second = tarn__residual_norm(graph, x, first, s->dropout, gain, bias);
  tarn__residual_out third = tarn__residual_norm(graph, second.sum, branch, s->dropout, gain, bias);
  check_output(c, tarn__residual_norm(graph, second.y, third.sum, s->dropout, gain, bias).y);
  check_output(c, third.y);
}

static void chains(void **state) {
  (void)state;
  shape s = {45, 72, true, true, true, true, 0.25, true, true, true};
  check_kernels(build_twice, &s, "chain", 3e-5, 0.04);
}

static void evaluation(void **state) {
  (void)state;
  shape s = {33, 100, true, true, true, true, 0.3, true, true, true};
  check_kernels_mode(build, &s, "without training", false, 1e-5, 0.015);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(parts), cmocka_unit_test(chains),
                                     cmocka_unit_test(evaluation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

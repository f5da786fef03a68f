// gated_conv and the ops on gradients that stand in for true ones: the fast kernels against the reference in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/gated_conv_check.h"

static void gated_conv(void **state) {
  (void)state;
  for (size_t i = 0; i < GATED_CONV_SHAPES; i++)
    check_kernels(gated_conv_build, &gated_conv_shapes[i], gated_conv_shapes[i].name, 1e-5, 2e-2);
}

typedef struct shape {
  int64_t rows, cols;
} shape;

static tarn__tensor *measured[2];
static tarn__stand_in_sums sums;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *dy = check_input(c, graph, s->rows, s->cols, 1.0, false);
  tarn__tensor *delta = check_input(c, graph, s->rows, s->cols, 1.0, false);
  tarn__tensor *copy = tarn__stand_in_copy(graph, dy);
  check_output(c, copy);
  check_output(c, tarn__stand_in_add(graph, dy, delta, 0.25));
  tarn__tensor *error;
  measured[0] = tarn__stand_in_measure(graph, copy, delta, &error);
  check_output(c, error);
  measured[1] = tarn__stand_in_measure(graph, copy, delta, NULL);
}

static void add_measured(const tarn__graph *graph) {
  sums = (tarn__stand_in_sums){0};
  for (int k = 0; k < 2; k++) {
    tarn__stand_in_sums own;
    check_ok(tarn__graph_get(graph, &own, measured[k]));
    sums.dot += own.dot;
    sums.approximation += own.approximation;
    sums.truth += own.truth;
  }
}

// Of both measurements.
static void assert_sums(const check *c) {
  double dot = 0, xx = 0, yy = 0;
  const check_item *x = &c->item[0], *y = &c->item[1];
  for (int64_t i = 0; i < x->rows * x->cols; i++) {
    dot += 2 * x->value[i] * y->value[i];
    xx += 2 * x->value[i] * x->value[i];
    yy += 2 * y->value[i] * y->value[i];
  }
  assert_true(fabs(sums.dot - dot) <= 1e-9 * (xx + yy));
  assert_true(fabs(sums.approximation - xx) <= 1e-9 * xx && fabs(sums.truth - yy) <= 1e-9 * yy);
}

static void stand_in(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 1}, {17, 24}, {40, 129}, {300, 16}};
  static const tarn__dtype dtypes[] = {TARN__F64, TARN__F32, TARN__F32, TARN__BF16};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_kernels_mode(build, &shapes[i], "stand_in", false, 1e-5, 2e-2);
    for (int k = 0; k < 4; k++) {
      check c;
      check_open(&c);
      c.after = add_measured;
      check_run(&c, build, &shapes[i], k < 2 ? &tarn__device_reference : check_device(), dtypes[k], false);
      assert_sums(&c);
      if (k >= 2 && check_device() == &tarn__device_cpu)
        bits_add((const double[]){sums.dot, sums.approximation, sums.truth}, 3);
      check_close(&c);
    }
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gated_conv), cmocka_unit_test(stand_in)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/norm_check.h"

static const tarn__norm_form forms[] = {TARN__NORM_LAYER, TARN__NORM_RMS, TARN__NORM_SCALE};

static void one(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool norm, use_sum, use_y, trained;
    double dropout;
  } cases[] = {
      {"post-norm", true, false, true, true, 0.3},      {"post-norm, no dropout", true, false, true, true, 0.0},
      {"pre-norm", true, true, true, true, 0.3},        {"pre-norm, frozen", true, true, true, false, 0.3},
      {"sum alone", false, true, false, false, 0.3},    {"sum alone, no dropout", false, true, false, false, 0.0},
      {"norm not used", true, true, false, false, 0.3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int f = 0; f < 3; f++) {
      const norm_shape s = {7,
                            12,
                            true,
                            cases[i].norm,
                            cases[i].use_sum,
                            cases[i].use_y,
                            cases[i].dropout,
                            true,
                            true,
                            cases[i].trained,
                            forms[f]};
      check_gradients(norm_build, &s, cases[i].name, 1e-7);
    }
}

// Norms with shared gain and bias, whose gradients add up, and inputs whose gradients come from several nodes.
static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const norm_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, 7, 12, 1.0, true), *branch = check_input(c, graph, 7, 12, 1.0, true);
  const tarn__norm norm = norm_params(c, s->form, 12, true);
  tarn__tensor *first = tarn__residual_norm(graph, x, NULL, 0.0, norm).y;
  tarn__residual_out second = tarn__residual_norm(graph, x, first, s->dropout, norm);
  tarn__residual_out third = tarn__residual_norm(graph, second.sum, branch, s->dropout, norm);
  tarn__tensor *fourth = tarn__residual_norm(graph, third.sum, branch, s->dropout, (tarn__norm){0}).sum;
  check_output(c, tarn__residual_norm(graph, second.y, fourth, s->dropout, norm).y);
  check_output(c, third.y);
}

static void chain(void **state) {
  (void)state;
  for (int f = 0; f < 3; f++) {
    const norm_shape s = {.dropout = 0.25, .form = forms[f]};
    check_gradients(build_chain, &s, "chain", 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one), cmocka_unit_test(chain)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// The fast kernels of tangents against the reference in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/swish_check.h"
#include "tangents/tangent_cases.h"

typedef struct wide {
  int64_t rows, cols;
  tarn__activation form;
} wide;

static void build_wide(check *c, tarn__graph *graph, const void *spec) {
  const wide *w = spec;
  tarn__tensor *x = check_input(c, graph, w->rows, 2 * w->cols, 1.5, true);
  check_output(c, tarn__glu(graph, x, w->form));
  if (w->form != TARN__IDENTITY && w->form != TARN__RELU) check_output(c, tarn__activate(graph, x, w->form));
}

static void activations(void **state) {
  (void)state;
  for (tarn__activation form = TARN__IDENTITY; form < TARN__ACTIVATIONS_END; form++) {
    const wide cases[] = {{1, 3, form}, {5, 64, form}, {3, 1040, form}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      check_tangent_kernels_mode(build_wide, &cases[i], "activation and glu", false, 1e-5);
    check_tangent_kernels(build_linear, &form, "linear", 1e-5);
  }
  check_tangent_kernels(build_dropout, NULL, "dropout", 1e-6);
}

static void norms(void **state) {
  (void)state;
  for (tarn__norm_form form = TARN__NORM_LAYER; form <= TARN__NORM_SCALE; form++) {
    static const int64_t cases_rows[] = {1, 17}, cols[] = {8, 24, 100, 512};
    for (size_t i = 0; i < sizeof cases_rows / sizeof *cases_rows; i++)
      for (size_t k = 0; k < sizeof cols / sizeof *cols; k++) {
        const norm_shape both = {cases_rows[i], cols[k], true, true, true, true, 0.3, true, true, true, form};
        check_tangent_kernels(norm_build, &both, "sum and norm", 1e-5);
        const norm_shape alone = {cases_rows[i], cols[k], false, true, false, true, 0.0, true, false, true, form};
        check_tangent_kernels_mode(norm_build, &alone, "norm alone", false, 1e-5);
      }
    static const int64_t widths[] = {700, 1030};  // a card has other kernels for them
    for (size_t k = 0; check_device() != &tarn__device_cpu && k < sizeof widths / sizeof *widths; k++) {
      const norm_shape both = {5, widths[k], true, true, true, true, 0.3, true, true, true, form};
      check_tangent_kernels(norm_build, &both, "wide rows", 1e-5);
    }
    const norm_shape branch = {7, 40, true, true, true, true, 0.3, false, true, true, form};
    check_tangent_kernels(norm_build, &branch, "branch alone", 1e-5);
    const norm_shape sum = {7, 40, true, false, true, false, 0.3, true, true, true, form};
    check_tangent_kernels(norm_build, &sum, "sum alone", 1e-5);
  }
  for (size_t i = 0; i < sizeof deep_cases / sizeof *deep_cases; i++)
    check_tangent_kernels(deep_build, &deep_cases[i].s, deep_cases[i].name, 1e-5);
}

// Small heads, heads of whole registers, and more queries than a block.
static void attention(void **state) {
  (void)state;
  static const attention_case large[] = {
      {{128, 2, 3, {20, 49, 1}, {0}, true, false, true, false, 0.0}, 0.0, 0, false, 0, 0, true},
      {{128, 2, 2, {53, 70}, {0}, true, true, true, false, 0.2}, 0.0, 0, false, 0, 0, true},
      {{192, 6, 2, {17, 50}, {0}, true, false, true, true, 0.2}, 8.0, 0, true, 0, 0, true},
      {{192, 6, 3, {50, 3, 16}, {2, 140, 33}, false, false, true, true, 0.1}, 0.0, 2, false, 0, 0, true},
      {{60, 3, 2, {70, 33}, {0}, true, true, true, true, 0.0}, 0.0, 1, true, 8, 0, true}};
  for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++)
    check_tangent_kernels(build_attention, &attention_cases[i].a, attention_cases[i].name, 3e-5);
  for (size_t i = 0; i < sizeof large / sizeof *large; i++)
    check_tangent_kernels(build_attention, &large[i], "large attention", 3e-5);
  // The bits of the processor are on record.
  static const attention_case single = {
      {640, 1, 2, {3, 20}, {0}, true, true, true, false, 0.2}, 0.0, 0, false, 0, 0, true};
  if (check_device() != &tarn__device_cpu) check_tangent_kernels(build_attention, &single, "one wide head", 3e-5);
}

// On the processor tests/tangents has the rule; its bits here are on record.
static void swish(void **state) {
  (void)state;
  for (int form = 0; check_device() != &tarn__device_cpu && form < 4; form++) {
    const swish_shape s = {form > 1 ? 65 : 3, form > 1 ? 48 : 17, form % 2 == 1, false, true, 1};
    check_tangent_kernels_mode(swish_build, &s, "swish with beta", false, 1e-5);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(activations), cmocka_unit_test(norms),
                                     cmocka_unit_test(attention), cmocka_unit_test(swish)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

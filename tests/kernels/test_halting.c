// Adaptive computation time: kernels against the reference, the numbers of Graves (2016), and what does not fit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/halting_check.h"
#include "tangents/tangent_check.h"

static void against_reference(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof halting_shapes / sizeof *halting_shapes; i++)
    check_kernels(halting_build, &halting_shapes[i], "halting", 1e-5, 0.03);
}

static void tangents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof halting_shapes / sizeof *halting_shapes; i++)
    check_tangent_kernels(halting_build, &halting_shapes[i], "halting", 1e-5);
}

// A row of probabilities 0.5, 0.3, 0.4 and the threshold 0.9 halts in the third step with what is left of 1.
static void steps(void **state) {
  (void)state;
  static const double p[] = {0.5, 0.3, 0.4, 0.7}, weights[] = {0.5, 0.3, 0.2, 0.0}, sums[] = {0.5, 0.8, 2.0, 2.0};
  double before = 0.0;
  for (int t = 0; t < 4; t++) {
    const tarn__halting_spec spec = {.threshold = 0.9};
    const tarn__halting_row row = tarn__halting_step(&spec, log(p[t] / (1.0 - p[t])), before);
    assert_true(fabs(row.weight - weights[t]) < 1e-12 && fabs(row.sum - sums[t]) < 1e-12);
    assert_true(row.runs == (t < 3 ? 1.0 : 0.0));
    before = row.sum;
  }
  const tarn__halting_spec last = {.threshold = 0.9, .last = 1};
  assert_true(tarn__halting_step(&last, 0.0, 0.25).weight == 0.75);
}

// The ponder cost N + R: its gradient is that of R, less 1 for every earlier p.
static void ponder_cost(void **state) {
  (void)state;
  const tarn__halting_spec spec = {.threshold = 0.9, .cost = 0.3};
  const tarn__halting_change halts = tarn__halting_gradient(&spec, 0.1, 0.8, TARN__HALTED, 0.0, 0.0);
  assert_true(halts.first == 0.0 && halts.second == -0.3);
  const tarn__halting_change runs = tarn__halting_gradient(&spec, 0.0, 0.2, 0.7, 0.0, -0.3);
  assert_true(fabs(runs.first + 0.3 * 0.25) < 1e-15 && runs.second == -0.3);
}

static void refused(void **state) {
  (void)state;
  static float memory[8];
  for (int what = 0; what < 2; what++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__tensor *z = tarn__graph_external(&graph, TARN__F32, 4, what == 0 ? 2 : 1, memory, "z");
    tarn__halting(&graph, z, NULL, (tarn__halting_spec){.threshold = what == 1 ? 1.0 : 0.9});
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_reference), cmocka_unit_test(tangents),
                                     cmocka_unit_test(steps), cmocka_unit_test(ponder_cost), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

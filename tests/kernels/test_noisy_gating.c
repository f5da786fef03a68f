// Noisy gating: fast kernels against the reference, the noise itself, and that without training there is none.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/noisy_check.h"
#include "tangents/tangent_check.h"

static void against_reference(void **state) {
  (void)state;
  for (int i = 0; i < NOISY_SHAPES; i++) {
    // In BF16 other inputs make other choices.
    check_kernels(noisy_build, &noisy_shapes[i], "noisy gating", 3e-5, 0.0);
    if (noisy_shapes[i].x) check_tangent_kernels_mode(noisy_build, &noisy_shapes[i], "noisy gating", true, 3e-5);
  }
}

// Normal numbers: mean, variance and fourth moment of those of many rows, within four standard errors.
static double sums[3];
static int64_t drawn;

static void add_noise(const tarn__graph *graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const tarn__tensor *made =
        graph->nodes[i]->op->id == TARN__OP_ROUTE ? graph->nodes[i]->out[TARN__ROUTE_PROBABILITIES] : NULL;
    if (!made) continue;
    const int64_t experts = made->cols / 3;
    for (int64_t k = 0; k < made->rows * experts; k++, drawn++) {
      const double n =
          check_load(made->data, made->dtype, (size_t)(k / experts * 3 * experts + 2 * experts + k % experts));
      sums[0] += n, sums[1] += n * n, sums[2] += n * n * n * n;
    }
  }
}

static void noise_is_normal(void **state) {
  (void)state;
  const noisy_shape s = {2000, 4, 10, 2, 0.1, 0.1, true, true, true};
  check c;
  check_open(&c);
  c.after = add_noise;
  sums[0] = sums[1] = sums[2] = 0.0;
  drawn = 0;
  check_run(&c, noisy_build, &s, check_device(), TARN__F32, true);
  const double count = (double)drawn, error = 4.0 / sqrt(count);
  assert_int_equal(drawn, 20000);
  assert_true(fabs(sums[0] / count) < error);
  assert_true(fabs(sums[1] / count - 1.0) < error * sqrt(2.0));
  assert_true(fabs(sums[2] / count - 3.0) < error * sqrt(96.0));
  check_close(&c);
}

static void build_plain(check *c, tarn__graph *graph, const void *spec) {
  const noisy_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, s->x);
  tarn__param *router = check_param(c, s->experts, s->d, 0.6, s->router);
  check_param(c, s->experts, s->d, 0.4, s->noise);
  check_output(c, tarn__route(graph, x, router, noisy_spec(s)).gates);
}

static void without_training_there_is_none(void **state) {
  (void)state;
  check noisy, plain;
  check_open(&noisy);
  check_open(&plain);
  check_run(&noisy, noisy_build, &noisy_shapes[1], check_device(), TARN__F32, false);
  check_run(&plain, build_plain, &noisy_shapes[1], check_device(), TARN__F32, false);
  assert_memory_equal(noisy.output_value[0], plain.output_value[0], plain.output_size[0] * sizeof(double));
  check_close(&noisy);
  check_close(&plain);
}

static void operations(void **state) {
  (void)state;
  const noisy_shape s = {8, 5, 4, 2, 0.1, 0.1, true, true, true};
  check c;
  tarn__graph graph = {0};
  check_open(&c);
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, check_device(), TARN__F32, true, 1);
  noisy_build(&c, &graph, &s);
  for (size_t i = 0; i < graph.node_count; i++)
    if (graph.nodes[i]->op->id == TARN__OP_ROUTE)
      assert_true(graph.nodes[i]->op->flops(graph.nodes[i]) == 2.0 * 2 * 8 * 5 * 4);
  tarn__graph_close(&graph);
  check_close(&c);
}

// What does not fit together fails as the graph is planned.
static void refused(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    tarn__graph graph = {0};
    float memory[32] = {0};
    tarn__param router = {.name = "router", .rows = 4, .cols = 3, .dtype = TARN__F32, .value = memory};
    tarn__param noise = {.name = "noise", .rows = what == 0 ? 3 : 4, .cols = 3, .dtype = TARN__F32, .value = memory};
    tarn__route_spec spec = {.choices = what == 1 ? 4 : 2, .normalise = what != 2, .capacity = 1};
    if (what == 3) spec.balance = 0.1;
    tarn__graph_begin(&graph, check_device(), TARN__F32, true, 1);
    tarn__route_noisy(&graph, tarn__graph_external(&graph, TARN__F32, 2, 3, memory, "x"), &router, &noise, spec);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_reference), cmocka_unit_test(noise_is_normal),
                                     cmocka_unit_test(without_training_there_is_none), cmocka_unit_test(operations),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

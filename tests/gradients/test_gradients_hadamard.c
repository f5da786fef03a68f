// The gradients of hadamard against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "kernels/hadamard_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t in, out;
  int blocks;
} shape;

// A structured layer with ReLU between trained ones, its input read by another one too.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, 4, 5, 1.0, true);
  tarn__tensor *y = tarn__linear(graph, x, check_param(c, s->in, 5, 0.5, true), NULL, TARN__IDENTITY);
  tarn__param *first = check_signs(c, s->out, s->in, s->blocks), *bias = check_param(c, 1, s->out, 0.5, false);
  tarn__param *second = check_signs(c, s->in, s->out, 1);
  tarn__tensor *z = tarn__hadamard(graph, y, first, bias, TARN__RELU);
  check_output(c, tarn__hadamard(graph, z, second, NULL, TARN__IDENTITY));
  check_output(c, tarn__hadamard(graph, y, first, NULL, TARN__IDENTITY));
}

static void all_shapes(void **state) {
  (void)state;
  static const shape shapes[] = {{8, 8, 1}, {8, 16, 1}, {16, 8, 1}, {6, 18, 3}, {7, 10, 1}, {10, 7, 1}, {12, 6, 2}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "hadamard %lld -> %lld", (long long)shapes[i].in, (long long)shapes[i].out);
    check_gradients(build, &shapes[i], name, 1e-8);
    check_kernels(build, &shapes[i], name, 1e-5, 0.0);
  }
}

// Frozen: the input's gradient is the one node of the backward pass.
static void one_node_backward(void **state) {
  (void)state;
  check c;
  check_open(&c);
  tarn__graph graph = {0};
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  tarn__tensor *x = check_input(&c, &graph, 4, 8, 1.0, true);
  check_output(&c,
               tarn__hadamard(&graph, x, check_signs(&c, 16, 8, 1), check_param(&c, 1, 16, 0.5, false), TARN__RELU));
  check_sum(&c, &graph);
  size_t forward = graph.node_count;
  tarn__graph_differentiate(&graph, c.loss);
  assert_int_equal(graph.node_count, forward + 2);  // the seed of the loss, and dx
  assert_string_equal(graph.nodes[forward + 1]->op->name, "hadamard_dx");
  tarn__graph_close(&graph);
  check_close(&c);
}

static void trained_signs_are_refused(void **state) {
  (void)state;
  check c;
  check_open(&c);
  tarn__graph graph = {0};
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  tarn__tensor *x = check_input(&c, &graph, 4, 8, 1.0, true);
  tarn__param *signs = check_signs(&c, 16, 8, 1);
  signs->trained = true;
  check_output(&c, tarn__hadamard(&graph, x, signs, NULL, TARN__IDENTITY));
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
  tarn__graph_close(&graph);
  check_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes), cmocka_unit_test(one_node_backward),
                                     cmocka_unit_test(trained_signs_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

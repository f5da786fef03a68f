#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, cols;
  double dropout;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, true);
  check_output(c, tarn__dropout_apply(graph, x, s->dropout));
}

static void sizes(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 8, 0.5}, {7, 100, 0.1}, {33, 1024, 0.3}, {5, 1500, 0.9}, {2, 2049, 0.25}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_kernels(build, &shapes[i], "dropout", 1e-6, 0.01);
}

static void gradient(void **state) {
  (void)state;
  const shape s = {7, 12, 0.4};
  check_gradients(build, &s, "dropout", 1e-7);
}

// Without dropout there is no node.
static void nothing_to_drop(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, true, 1);
  tarn__tensor *x = tarn__graph_tensor(&graph, TARN__F32, 3, 4, "x");
  assert_ptr_equal(tarn__dropout_apply(&graph, x, 0.0), x);
  assert_int_equal(graph.node_count, 0);
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
  x = tarn__graph_tensor(&graph, TARN__F32, 3, 4, "x");
  assert_ptr_equal(tarn__dropout_apply(&graph, x, 0.5), x);
  tarn__graph_close(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(gradient),
                                     cmocka_unit_test(nothing_to_drop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

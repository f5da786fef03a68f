// The gradients of linear against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/scale.h"

static void build_two(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  tarn__tensor *x = check_input(c, graph, 5, 7, 1.0, true);
  tarn__param *first = check_param(c, 6, 7, 0.5, true), *bias = check_param(c, 1, 6, 0.5, true);
  tarn__param *second = check_param(c, 7, 6, 0.5, true);
  tarn__tensor *hidden = tarn__linear(graph, x, first, bias, TARN__RELU);
  check_output(c, tarn__linear(graph, hidden, second, NULL, TARN__IDENTITY));
}

// Every activation but relu, after a product and alone, in a frozen layer too.
static void build_activation(check *c, tarn__graph *graph, const void *spec) {
  const tarn__activation form = *(const tarn__activation *)spec;
  tarn__tensor *x = check_input(c, graph, 5, 7, 1.5, true);
  tarn__param *first = check_param(c, 6, 7, 0.5, true), *bias = check_param(c, 1, 6, 0.5, true);
  tarn__param *frozen = check_param(c, 6, 6, 0.5, false);
  tarn__tensor *hidden = tarn__linear(graph, x, first, bias, form);
  hidden = tarn__linear(graph, hidden, frozen, NULL, form);
  check_output(c, tarn__activate(graph, tarn__linear(graph, hidden, frozen, NULL, TARN__IDENTITY), form));
}

static void activations(void **state) {
  (void)state;
  for (tarn__activation form = TARN__GELU; form < TARN__ACTIVATIONS_END; form++)
    check_gradients(build_activation, &form, "activation", 1e-7);
}

// A frozen layer between trained ones, weights used twice, an input read twice.
static void build_shared(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  tarn__tensor *x = check_input(c, graph, 4, 5, 1.0, true);
  tarn__param *weight = check_param(c, 5, 5, 0.5, true), *bias = check_param(c, 1, 5, 0.5, true);
  tarn__param *frozen = check_param(c, 5, 5, 0.5, false);
  tarn__tensor *y = tarn__linear(graph, x, weight, bias, TARN__RELU);
  y = tarn__linear(graph, y, frozen, bias, TARN__IDENTITY);
  check_output(c, tarn__linear(graph, y, weight, NULL, TARN__IDENTITY));
  check_output(c, tarn__linear(graph, x, frozen, NULL, TARN__IDENTITY));
}

static void linear(void **state) {
  (void)state;
  check_gradients(build_two, NULL, "two linear layers", 1e-8);
}

static void shared(void **state) {
  (void)state;
  check_gradients(build_shared, NULL, "shared and frozen linear layers", 1e-8);
  check_kernels(build_shared, NULL, "shared and frozen linear layers", 1e-5, 0.02);
}

// What a frozen weight does not need is not there.
static void frozen_has_no_gradient_node(void **state) {
  (void)state;
  tarn__graph graph = {0};
  float weight[48] = {0}, grad[48] = {0};
  tarn__param trained = {.name = "trained",
                         .rows = 6,
                         .cols = 8,
                         .trained = true,
                         .dtype = TARN__F32,
                         .value = weight,
                         .training.grad = grad};
  tarn__param frozen = {.name = "frozen", .rows = 8, .cols = 6, .dtype = TARN__F32, .value = weight};
  float words[80] = {0};
  tarn__param table = {.name = "table", .rows = 10, .cols = 8, .dtype = TARN__F32, .value = words};
  int32_t targets[4] = {0};
  double scale = 1.0;
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  float input[32] = {0};
  tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 4, 8, input, "x");
  tarn__tensor *hidden = tarn__linear(&graph, x, &trained, NULL, TARN__IDENTITY);
  tarn__tensor *y = tarn__linear(&graph, hidden, &frozen, NULL, TARN__IDENTITY);
  tarn__tensor *wanted = tarn__graph_input(&graph, 4, targets, "targets");
  tarn__tensor *loss = tarn__output_loss(&graph, y, &table, NULL, wanted, 0.0, scale);
  assert_int_equal(graph.node_count, 3);
  tarn__graph_differentiate(&graph, loss);
  // dx of the frozen layer and dweight of the trained one; nothing else.
  assert_int_equal(graph.node_count, 5);
  assert_string_equal(graph.nodes[3]->op->name, "linear_dx");
  assert_string_equal(graph.nodes[4]->op->name, "linear_dweight");
  assert_true(hidden->needs_grad && y->needs_grad && !x->needs_grad);
  tarn__graph_close(&graph);
}

// Who reads a linear with an activation: a product takes the gradient through the activation where it is the last to
// add to it.
enum { BY_ONE, BY_TWO, BY_PRODUCTS_AND_ANOTHER, BY_A_SHIFT };

static void build_hidden(check *c, tarn__graph *graph, const void *spec) {
  const int read = *(const int *)spec;
  tarn__tensor *x = check_input(c, graph, 5, 7, 1.0, true);
  tarn__param *first = check_param(c, 6, 7, 0.5, true), *bias = check_param(c, 1, 6, 0.5, true);
  tarn__param *second = check_param(c, 7, 6, 0.5, true), *last = check_param(c, 1, 7, 0.5, true);
  tarn__tensor *hidden = tarn__linear(graph, x, first, bias, TARN__GELU);
  if (read == BY_PRODUCTS_AND_ANOTHER) check_output(c, tarn__activate(graph, hidden, TARN__SWISH));
  if (read == BY_A_SHIFT) hidden = tarn__scale(graph, hidden, NULL, check_param(c, 1, 1, 0.5, true));
  check_output(c, tarn__linear(graph, hidden, second, last, TARN__IDENTITY));
  if (read == BY_TWO || read == BY_PRODUCTS_AND_ANOTHER)
    check_output(c, tarn__linear(graph, hidden, second, last, TARN__RELU));
}

static void hidden_activations(void **state) {
  (void)state;
  static const char *const names[] = {"an activation between products", "an activation that two products read",
                                      "an activation read thrice", "an activation and a shift"};
  for (int read = BY_ONE; read <= BY_A_SHIFT; read++) {
    check_gradients(build_hidden, &read, names[read], 1e-7);
    check_kernels(build_hidden, &read, names[read], 1e-5, 0.02);
  }
}

static void no_pass_between_products(void **state) {
  (void)state;
  enum { WIDTH = 4 };
  float weight[WIDTH * WIDTH] = {0}, grad[WIDTH * WIDTH] = {0};
  tarn__param params[4];
  for (int i = 0; i < 4; i++)
    params[i] = (tarn__param){.name = "trained",
                              .rows = i % 2 ? 1 : WIDTH,
                              .cols = WIDTH,
                              .trained = true,
                              .dtype = TARN__F32,
                              .value = weight,
                              .training.grad = grad};
  tarn__graph graph = {0};
  int32_t targets[3] = {0};
  double scale = 1.0;
  float input[3 * WIDTH] = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 3, WIDTH, input, "x");
  tarn__tensor *h = tarn__linear(&graph, x, &params[0], &params[1], TARN__RELU);
  h = tarn__linear(&graph, h, &params[2], &params[3], TARN__IDENTITY);
  tarn__tensor *wanted = tarn__graph_input(&graph, 3, targets, "targets");
  tarn__graph_differentiate(&graph, tarn__output_loss(&graph, h, &params[0], NULL, wanted, 0.0, scale));
  // Of the second linear: dweight with the bias, dx with the activation; of the first: dweight with the bias.
  assert_int_equal(graph.status, TARN_STATUS_OK);
  assert_int_equal(graph.node_count, graph.forward_count + 3);
  for (size_t i = graph.forward_count; i < graph.node_count; i++)
    assert_string_not_equal(graph.nodes[i]->op->name, "linear_dz");
  tarn__graph_close(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(linear),
                                     cmocka_unit_test(shared),
                                     cmocka_unit_test(activations),
                                     cmocka_unit_test(frozen_has_no_gradient_node),
                                     cmocka_unit_test(hidden_activations),
                                     cmocka_unit_test(no_pass_between_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// The gradients of routing, grouped products and weighted rows against finite differences.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/grouped.h"
#include "ops/route.h"
#include "ops/swish_beta.h"
#include "ops/weighted_rows.h"

enum { ROWS = 13, D = 6, WIDTH = 5, EXPERTS = 4 };

typedef struct variant {
  const char *name;
  tarn__route_spec route;
  tarn__activation activation;
  bool frozen;       // the experts' matrices
  bool learns_beta;  // of Swish behind the first product
} variant;

static const variant variants[] = {
    {"top-1", {.choices = 1, .capacity = INFINITY, .share = 1}, TARN__RELU, false, false},
    {"top-2", {.choices = 2, .normalise = 1, .capacity = INFINITY, .share = 1}, TARN__GELU, false, false},
    {"top-3 with noise", {.choices = 3, .normalise = 1, .capacity = INFINITY, .noise = 0.3}, TARN__SWISH, false, false},
    {"top-2 with little room", {.choices = 2, .normalise = 1, .capacity = 0.6}, TARN__IDENTITY, false, false},
    {"top-1 with little room", {.choices = 1, .capacity = 0.7}, TARN__RELU, true, false},
    {"top-2 with little room and a learnt beta", {.choices = 2, .capacity = 1}, TARN__IDENTITY, false, true},
};

static void build(check *c, tarn__graph *graph, const void *spec) {
  const variant *v = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  tarn__param *router = check_param(c, EXPERTS, D, 1.0, true);
  tarn__param *in = check_param(c, EXPERTS * WIDTH, D, 0.6, !v->frozen);
  tarn__param *in_bias = check_param(c, 1, EXPERTS * WIDTH, 0.5, true);
  tarn__param *out = check_param(c, EXPERTS * D, WIDTH, 0.6, !v->frozen);
  tarn__param *beta = v->learns_beta ? check_param(c, 1, 1, 1.0, true) : NULL;
  in->out = WIDTH;
  out->out = D;
  const tarn__routed routed = tarn__route(graph, x, router, v->route);
  tarn__tensor *rows = tarn__gather_rows(graph, x, &routed);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, in, in_bias, v->activation);
  if (beta) rows = tarn__swish_beta(graph, rows, routed.offsets, 0.0, beta, false);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, out, NULL, TARN__IDENTITY);
  check_output(c, tarn__weighted_rows(graph, rows, routed.places, routed.gates));
}

static void experts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    check_gradients(build, &variants[i], variants[i].name, 1e-7);
}

static int slopes;  // passes for the slope of an activation in the last graph

static void count_slopes(const tarn__graph *graph) {
  slopes = 0;
  for (size_t n = 0; n < graph->node_count; n++) slopes += strcmp(graph->nodes[n]->op->name, "linear_dz") == 0;
}

// The input gradient of the second product takes the slope of the first one's activation; Swish with a learnt beta is
// an op of its own.
static void no_pass_between_products(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    check c;
    check_open(&c);
    c.after = count_slopes;
    check_run(&c, build, &variants[i], &tarn__device_reference, TARN__F64, true);
    check_close(&c);
    assert_int_equal(slopes, 0);
  }
}

// Rows of a table that is a parameter, one of them named often and some never.
static void build_table(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  static const int32_t numbers[3][4] = {{2, 0, 2, 5}, {5, 5, 5, 5}, {1, -1, 2, 0}};
  tarn__param *table = check_param(c, 7, 9, 1.0, true);
  tarn__tensor *gates = check_input(c, graph, 3, 4, 1.0, true);
  tarn__tensor *ids = check_ints(c, graph, &numbers[0][0], 12);
  ids->rows = 3, ids->cols = 4;
  check_output(c, tarn__weighted_rows(graph, tarn__graph_param(graph, table), ids, gates));
}

static void table(void **state) {
  (void)state;
  check_gradients(build_table, NULL, "rows of a table", 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(experts), cmocka_unit_test(no_pass_between_products),
                                     cmocka_unit_test(table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

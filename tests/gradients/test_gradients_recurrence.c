// The gradients of recurrences through time against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/recurrence_check.h"

static void try_case(const char *name, tarn__recurrence_spec spec, recurrence_case at) {
  char text[120];
  snprintf(text, sizeof text, "%s, %d directions%s%s", name, spec.directions, spec.reverse ? ", reverse" : "",
           at.carried ? ", carried" : "");
  at.spec = spec;
  check_gradients(recurrence_build, &at, text, 1e-7);
}

// Everything trained; input alone; weights alone; biases alone; one direction's alone.
static void try_cell(const char *name, tarn__recurrence_spec spec) {
  static const recurrence_case cases[] = {
      {.sentences = 5, .longest = 6, .x = true, .weights = true, .biases = true},
      {.sentences = 3, .longest = 4, .x = true, .twice = true},
      {.sentences = 3, .longest = 4, .weights = true, .no_biases = true},
      {.sentences = 3, .longest = 4, .biases = true},
      {.sentences = 4, .longest = 4, .x = true, .weights = true, .biases = true, .half = true},
      {.sentences = 1, .longest = 1, .x = true, .weights = true, .biases = true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    try_case(name, spec, cases[i]);
    recurrence_case carried = cases[i];
    carried.carried = true;
    if (!carried.half) try_case(name, spec, carried);
    spec.reverse = true;
    try_case(name, spec, cases[i]);
    spec.reverse = false;
    spec.directions = 2;
    try_case(name, spec, cases[i]);
    spec.directions = 1;
  }
}

static void gru(void **state) {
  (void)state;
  try_cell("gru", (tarn__recurrence_spec){.cell = TARN__CELL_GRU, .hidden = 5, .directions = 1});
}

static void lstm(void **state) {
  (void)state;
  try_cell("lstm", (tarn__recurrence_spec){.cell = TARN__CELL_LSTM, .hidden = 5, .directions = 1});
}

static void echo(void **state) {
  (void)state;
  tarn__recurrence_spec spec = {.cell = TARN__CELL_ECHO, .hidden = 5, .directions = 1, .leak = 0.8};
  try_cell("echo, tanh", spec);
  spec.relu = true;
  spec.hidden = 6;  // of these random numbers none meets the kink
  try_cell("echo, relu", spec);
  spec.leak = 1.0;
  try_cell("echo, relu, leak 1", spec);
}

// With nothing trained there is no backward pass, and the node keeps its result alone.
static void frozen_keeps_nothing(void **state) {
  (void)state;
  recurrence_case at = {.spec = {.cell = TARN__CELL_LSTM, .hidden = 5, .directions = 2}, .sentences = 3, .longest = 4};
  check c;
  check_open(&c);
  c.dtype = TARN__F32;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  recurrence_build(&c, &graph, &at);
  const tarn__node *node = graph.nodes[graph.node_count - 1];
  assert_string_equal(node->op->name, "recurrence");
  assert_true(node->out[0] && !node->out[0]->needs_grad && !node->out[1] && !node->out[2]);
  tarn__graph_close(&graph);
  check_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gru), cmocka_unit_test(lstm), cmocka_unit_test(echo),
                                     cmocka_unit_test(frozen_keeps_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

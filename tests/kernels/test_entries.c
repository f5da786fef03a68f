// Weights that are stored as their entries, and leaks by unit: the fast kernels against the reference in double for
// every instruction set; the bits of the dense weight; steps that are the bits of whole sentences; operations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/entries_check.h"
#include "tangents/tangent_check.h"

static const tarn__recurrence_spec specs[] = {
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.3},
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.8, .reverse = true},
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.8, .relu = true},
};
enum { SPECS = sizeof specs / sizeof *specs };

static void agree_with_the_reference(void **state) {
  (void)state;
  static const int64_t hidden[] = {16, 33, 130, 600};
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
    for (int which = 0; which < SPECS; which++)
      for (int leaks = 0; leaks < 2; leaks++) {
        // In bf16 a ReLU whose sum is nearly 0 may take the other side: in few sums it does not.
        if (specs[which].relu && i > 1) continue;
        char text[120];
        snprintf(text, sizeof text, "entries %d, %lld units, leaks %d", which, (long long)hidden[i], leaks);
        entries_case at = {.spec = specs[which],
                           .sentences = 3 + 18 * (int64_t)i,
                           .longest = 6 - (int64_t)i,
                           .sparsity = i == 3 ? 0.99 : 0.85,
                           .stored = true,
                           .leaks = leaks,
                           .biases = i % 2 == 0,
                           .inputs = i == 1 || i == 2 ? 24 + (int64_t)i : 0,
                           .carried = i == 2 && !specs[which].reverse};
        at.spec.hidden = hidden[i];
        check_kernels(entries_build, &at, text, 2e-5, 0.1);
      }
  // Dense, with leaks by unit.
  entries_case at = {.spec = specs[0], .sentences = 9, .longest = 6, .leaks = true, .sparsity = 0.1, .biases = true};
  at.spec.hidden = 20;
  check_kernels(entries_build, &at, "dense, leaks", 2e-5, 0.1);
}

static void tangents_agree(void **state) {
  (void)state;
  for (int which = 0; which < 8; which++) {
    entries_case at = {.spec = specs[0],
                       .sentences = 5,
                       .longest = 6,
                       .sparsity = 0.85,
                       .stored = which & 1,
                       .leaks = which & 2,
                       .inputs = which & 4 ? 24 : 0};
    at.spec.hidden = 33;
    check_tangent_kernels(entries_build, &at, "tangents of entries", 3e-5);
  }
}

// From a share of zeros on, dense weights are multiplied as entries: then both give the same bits, gradients too.
static void bits_are_those_of_the_dense_weight(void **state) {
  (void)state;
  if (check_device() != &tarn__device_cpu) return;
  for (int bf16 = 0; bf16 < 2; bf16++) {
    entries_case at = {.spec = specs[0], .sentences = 40, .longest = 6, .sparsity = 0.9, .leaks = true};
    at.spec.hidden = 72;
    check dense, stored;
    check_open(&dense);
    check_open(&stored);
    const tarn__dtype dtype = bf16 ? TARN__BF16 : TARN__F32;
    check_run(&dense, entries_build, &at, &tarn__device_cpu, dtype, true);
    at.stored = true;
    check_run(&stored, entries_build, &at, &tarn__device_cpu, dtype, true);
    assert_memory_equal(dense.output_value[0], stored.output_value[0], dense.output_size[0] * sizeof(double));
    assert_memory_equal(dense.item[1].grad, stored.item[1].grad,
                        (size_t)(dense.item[1].rows * dense.item[1].cols) * sizeof(double));
    check_close(&dense);
    check_close(&stored);
  }
}

// One sentence token by token, and whole.
enum { TOKENS = 5, UNITS = 72 };

static void build_steps(check *c, tarn__graph *graph, const void *spec) {
  const entries_case *at = spec;
  const int32_t offset[] = {0, TOKENS}, row[] = {0, 1, 2, 3, 4};
  int32_t range[TOKENS][2];
  static tarn__reservoir reservoir = {.sparsity = 0.9};
  tarn__tensor *x = check_input(c, graph, TOKENS, UNITS, 1.0, false);
  tarn__recurrent weights[2] = {{.weight = entries_param(c, UNITS, UNITS, 0.8, 0.9, true)}};
  weights[0].weight->reservoir = &reservoir;
  weights[0].leaks = check_param_around(c, 1, UNITS, 0.6, 0.1, false);
  tarn__tensor *offsets = check_ints(c, graph, offset, 2), *rows = check_ints(c, graph, row, TOKENS);
  check_item *cache = check_next(c, CHECK_INPUT, TOKENS, UNITS, 0.0, false);
  if (!at->stored) {  // whole
    check_output(c, tarn__recurrence(graph, x, offsets, weights, at->spec));
    return;
  }
  tarn__tensor *states = tarn__graph_external(graph, graph->dtype, TOKENS, UNITS, cache->data, "cache");
  const size_t bytes = UNITS * tarn__dtype_size(graph->dtype);
  for (int t = 0; t < TOKENS; t++) {
    range[t][0] = 0;
    range[t][1] = t + 1;
    tarn__tensor *ranges = check_ints(c, graph, range[t], 2);
    tarn__tensor *token =
        tarn__graph_external(graph, graph->dtype, 1, UNITS, (char *)c->item[0].data + (size_t)t * bytes, "token");
    check_output(c, tarn__recurrence_rows(graph, token, states, t, rows, ranges, weights[0], at->spec));
  }
}

static void steps_are_the_whole_sentence(void **state) {
  (void)state;
  for (int which = 0; which < SPECS; which++) {
    if (specs[which].reverse) continue;
    entries_case at = {.spec = specs[which]};
    at.spec.hidden = UNITS;
    check whole, steps;
    check_open(&whole);
    check_open(&steps);
    check_run(&whole, build_steps, &at, check_device(), TARN__F32, false);
    at.stored = true;
    check_run(&steps, build_steps, &at, check_device(), TARN__F32, false);
    for (int t = 0; t < TOKENS; t++)
      assert_memory_equal(whole.output_value[0] + t * UNITS, steps.output_value[t], UNITS * sizeof(double));
    check_close(&whole);
    check_close(&steps);
    check_kernels_mode(build_steps, &at, "steps", false, 2e-5, 0.1);
  }
}

// By hand: 2 operations for each entry and row, of all rows in the projection, of all but the first of each sentence in
// the recurrence.
static void operations_are_of_entries(void **state) {
  (void)state;
  entries_case at = {.spec = specs[0], .sentences = 5, .longest = 7, .sparsity = 0.9, .stored = true, .inputs = 30};
  at.spec.hidden = 40;
  check c;
  check_open(&c);
  tarn__graph graph = {0};
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, CHECK_THREADS);
  entries_build(&c, &graph, &at);
  check_sum(&c, &graph);
  tarn__graph_differentiate(&graph, c.loss);
  double recurrence[2] = {0}, linear[2] = {0};
  for (size_t n = 0; n < graph.node_count; n++) {
    const tarn__node *node = graph.nodes[n];
    const bool back = n >= graph.forward_count;
    if (strncmp(node->op->name, "recurrence", 10) == 0) recurrence[back] += node->op->flops(node);
    if (strncmp(node->op->name, "sparse_linear", 13) == 0) linear[back] += node->op->flops(node);
  }
  const recurrence_case lengths = {.sentences = 5, .longest = 7};
  int32_t offset[RECURRENCE_SENTENCES + 1];
  const double rows = (double)recurrence_offsets(&lengths, offset);
  for (int pass = 0; pass < 2; pass++) {
    assert_true(fabs(recurrence[pass] - 2.0 * (rows - 5) * 160) < 1e-6);  // a tenth of 40 x 40
    assert_true(fabs(linear[pass] - 2.0 * rows * 240) < 1e-6);            // a fifth of 40 x 30
  }
  tarn__graph_close(&graph);
  check_close(&c);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agree_with_the_reference), cmocka_unit_test(tangents_agree),
                                     cmocka_unit_test(bits_are_those_of_the_dense_weight),
                                     cmocka_unit_test(steps_are_the_whole_sentence),
                                     cmocka_unit_test(operations_are_of_entries)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }

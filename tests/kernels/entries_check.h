// Weights that are stored as their entries, for the tests of their kernels and gradients. Include it after cmocka.h.
#ifndef TARN_TESTS_ENTRIES_CHECK_H
#define TARN_TESTS_ENTRIES_CHECK_H

#include "graph/entries.h"
#include "kernels/recurrence_check.h"
#include "ops/sparse_linear.h"

// A frozen parameter of which that share of the values is 0; stored: as its entries, in the memory of the dense values.
static inline tarn__param *entries_param(check *c, int64_t rows, int64_t cols, double scale, double sparsity,
                                         bool stored) {
  tarn__param *param = check_param(c, rows, cols, scale, false);
  check_item *item = &c->item[c->next - 1];
  tarn__random random;
  tarn__random_init(&random, 80, 0);
  for (int64_t i = 0; i < rows * cols; i++)
    if (tarn__random_uniform(&random) < sparsity) item->value[i] = 0.0;
  for (int64_t i = 0; i < rows * cols; i++) check_store(item->data, c->dtype, (size_t)i, item->value[i]);
  if (!stored) return param;
  for (int64_t i = 0; i < rows * cols; i++) param->entries += item->value[i] != 0.0;
  assert_true(tarn__param_value_bytes(param) <= (size_t)(rows * cols) * sizeof(double));
  const tarn__entries entries = tarn__entries_at(param, item->data);
  int32_t at = 0;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < cols; j++) {
      if (item->value[i * cols + j] == 0.0) continue;
      entries.columns[at] = (int32_t)j;
      check_store(entries.values, c->dtype == TARN__F64 ? TARN__F64 : TARN__F32, (size_t)at++,
                  item->value[i * cols + j]);
    }
    entries.starts[i + 1] = at;
  }
  entries.starts[0] = 0;
  return param;
}

// A recurrence of an echo state network with leaks by unit, of whole sentences and carried ones.
typedef struct entries_case {
  tarn__recurrence_spec spec;
  int64_t sentences, longest, inputs;  // inputs: columns of the input of a sparse projection; 0: there is none
  double sparsity;
  bool stored, leaks, biases, carried;
} entries_case;

static inline void entries_build(check *c, tarn__graph *graph, const void *spec) {
  const entries_case *at = spec;
  const int64_t n = at->spec.hidden;
  const recurrence_case lengths = {.sentences = at->sentences, .longest = at->longest};
  int32_t offset[RECURRENCE_SENTENCES + 1];
  const int64_t rows = recurrence_offsets(&lengths, offset);
  tarn__tensor *offsets = check_ints(c, graph, offset, at->sentences + 1);
  tarn__tensor *x = check_input(c, graph, rows, at->inputs ? at->inputs : n, 1.0, true);
  static tarn__reservoir reservoir;
  reservoir.sparsity = at->sparsity;
  tarn__recurrent weights[2] = {{0}};
  weights[0].weight = entries_param(c, n, n, 0.8, at->sparsity, at->stored);
  weights[0].weight->reservoir = &reservoir;
  if (at->biases) weights[0].bias = check_param(c, 1, n, 0.5, true);
  if (at->leaks) weights[0].leaks = check_param_around(c, 1, n, 0.6, 0.1, false);
  tarn__tensor *drive = tarn__residual_norm(graph, x, x, 0.0, (tarn__norm){0}).sum;
  if (at->inputs) {
    tarn__param *in = entries_param(c, n, at->inputs, 0.7, 0.8, at->stored);
    in->sparsity = 0.8;
    // Read twice, so that its gradient is added to another.
    tarn__tensor *once =
        at->stored ? tarn__sparse_linear(graph, drive, in) : tarn__linear(graph, drive, in, NULL, TARN__IDENTITY);
    check_output(c, drive);
    drive = once;
  }
  if (at->carried) {
    tarn__tensor *start = recurrence_states(c, graph, at->sentences, &at->spec);
    tarn__tensor *end = recurrence_states(c, graph, at->sentences, &at->spec);
    check_output(c, tarn__recurrence_carried(graph, drive, offsets, weights[0], at->spec, start, end));
    return;
  }
  check_output(c, tarn__recurrence(graph, drive, offsets, weights, at->spec));
}

#endif

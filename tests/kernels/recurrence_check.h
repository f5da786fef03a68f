// A recurrence for the tests of its gradients and kernels. Include it after cmocka.h.
#ifndef TARN_TESTS_RECURRENCE_CHECK_H
#define TARN_TESTS_RECURRENCE_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { RECURRENCE_SENTENCES = 70 };

// Where something is trained, and how the sentences lie.
typedef struct recurrence_case {
  const char *name;
  tarn__recurrence_spec spec;
  int64_t sentences, longest;
  bool x, weights, biases;  // trained; weights and biases of the last direction only, if `half`
  bool half;
  bool no_biases;
  bool twice;       // the input is read by a second recurrence with the same weights
  bool carried;     // sentences begin with states
  bool chained;     // and a second recurrence over the same input with those that the first one ended with
  bool crowded;     // has more entries than its sparsity says
  double sparsity;  // of the recurrent weights, which are then a reservoir's; 0: dense
} recurrence_case;

// Lengths 0 .. longest without an order; among them 0 and 1 as soon as there are a few.
static inline int64_t recurrence_offsets(const recurrence_case *at, int32_t offsets[RECURRENCE_SENTENCES + 1]) {
  offsets[0] = 0;
  for (int64_t s = 0; s < at->sentences; s++)
    offsets[s + 1] = offsets[s] + (int32_t)(s == 0 ? at->longest : (s * 7 + 5) % (at->longest + 1));
  return offsets[at->sentences];
}

// Makes a parameter a reservoir's of that sparsity: most entries become zero. `crowded`: it says so, but is not.
static inline void recurrence_thin(check *c, tarn__graph *graph, tarn__param *param, const tarn__reservoir *reservoir,
                                   bool crowded) {
  check_item *item = &c->item[c->next - 1];
  param->reservoir = reservoir;
  tarn__random random;
  tarn__random_init(&random, 80, 0);
  for (int64_t i = 0; i < item->rows * item->cols; i++) {
    const bool zero = tarn__random_uniform(&random) < reservoir->sparsity;
    if (zero && !crowded) item->value[i] = 0.0;
    check_store(item->data, graph->dtype, (size_t)i, item->value[i]);
  }
}

// States of carried sentences, random or to be written, in the type that goes with that of the graph's x.
static inline tarn__tensor *recurrence_states(check *c, tarn__graph *graph, int64_t sentences,
                                              const tarn__recurrence_spec *spec) {
  const int64_t width = tarn__recurrence_cache_width(spec->cell, spec->hidden);
  const tarn__dtype dtype = tarn__recurrence_state_dtype(graph->dtype);
  check_item *item = check_next(c, CHECK_INPUT, sentences + 1, width, 0.6, false);
  for (int64_t i = 0; i < item->rows * width; i++) check_store(item->data, dtype, (size_t)i, item->value[i]);
  return item->tensor = tarn__graph_external(graph, dtype, item->rows, width, item->data, "states");
}

static inline void recurrence_build_carried(check *c, tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                                            tarn__recurrent weights, const recurrence_case *at) {
  tarn__tensor *start = recurrence_states(c, graph, at->sentences, &at->spec);
  tarn__tensor *middle = recurrence_states(c, graph, at->sentences, &at->spec);
  check_output(c, tarn__recurrence_carried(graph, x, offsets, weights, at->spec, start, middle));
  if (!at->chained) return;
  tarn__tensor *end = recurrence_states(c, graph, at->sentences, &at->spec);
  check_output(c, tarn__recurrence_carried(graph, x, offsets, weights, at->spec, middle, end));
}

static inline void recurrence_build(check *c, tarn__graph *graph, const void *spec) {
  const recurrence_case *at = spec;
  const int64_t n = at->spec.hidden;
  const int64_t gates = at->spec.cell == TARN__CELL_GRU ? 3 : at->spec.cell == TARN__CELL_LSTM ? 4 : 1;
  int32_t offset[RECURRENCE_SENTENCES + 1];
  int64_t rows = recurrence_offsets(at, offset);
  tarn__tensor *offsets = check_ints(c, graph, offset, at->sentences + 1);
  tarn__tensor *x = check_input(c, graph, rows, at->spec.directions * gates * n, 1.0, at->x);
  tarn__recurrent weights[2] = {{0}};
  for (int d = 0; d < at->spec.directions; d++) {
    const bool here = !at->half || d + 1 == at->spec.directions;
    weights[d].weight = check_param(c, gates * n, n, 0.8 / sqrt((double)n), at->weights && here);
    static tarn__reservoir reservoir;
    reservoir.sparsity = at->sparsity;
    if (at->sparsity > 0) recurrence_thin(c, graph, weights[d].weight, &reservoir, at->crowded);
    if (!at->no_biases) weights[d].bias = check_param(c, 1, gates * n, 0.5, at->biases && here);
  }
  // A copy of x in the workspace, over which the gates may be written.
  tarn__tensor *copy = tarn__residual_norm(graph, x, x, 0.0, (tarn__norm){0}).sum;
  if (at->carried) {
    recurrence_build_carried(c, graph, copy, offsets, weights[0], at);
    return;
  }
  check_output(c, tarn__recurrence(graph, copy, offsets, weights, at->spec));
  if (at->twice) check_output(c, tarn__recurrence(graph, copy, offsets, weights, at->spec));
}

#endif

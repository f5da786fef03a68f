// A small model of features and linear attention for the tests of kernels and of gradients. Include it after cmocka.h.
#ifndef TARN_TESTS_LINEAR_ATTENTION_CHECK_H
#define TARN_TESTS_LINEAR_ATTENTION_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/feature_map.h"
#include "ops/linear_attention.h"
#include "ops/ops.h"

typedef struct linear_case {
  int64_t heads, width, features;
  bool softmax, causal, carried, chained;
  int sentences;
  const int32_t *offsets;
  double scale;  // of x
  int rest;      // columns besides queries, keys and values
} linear_case;

static inline tarn__linear_attention_spec linear_spec(const linear_case *at) {
  return (tarn__linear_attention_spec){.heads = at->heads,
                                       .width = at->width,
                                       .features = at->features,
                                       .value_column = 2 * at->heads * at->width + at->rest,
                                       .causal = at->causal,
                                       .exponents = at->softmax};
}

// States, random or to be written, in the type that goes with that of the graph's x. z is kept away from 0.
static inline tarn__tensor *linear_states(check *c, tarn__graph *graph, const linear_case *at) {
  const tarn__linear_attention_spec spec = linear_spec(at);
  const tarn__dtype dtype = tarn__linear_attention_state_dtype(graph->dtype);
  const int64_t cols = tarn__linear_attention_state(&spec), size = tarn__linear_attention_head_state(&spec);
  check_item *item = check_next(c, CHECK_INPUT, at->sentences + 1, cols, 0.3, false);
  for (int64_t i = 0; i < item->rows * cols; i++) {
    const int64_t sums = i % cols % size - at->features * at->width;
    const bool sum = sums >= 0 && sums < at->features;
    check_store(item->data, dtype, (size_t)i, sum ? 0.5 + fabs(item->value[i]) : item->value[i]);
  }
  return item->tensor = tarn__graph_external(graph, dtype, item->rows, cols, item->data, "states");
}

static void linear_build(check *c, tarn__graph *graph, const void *memory) {
  const linear_case *at = memory;
  const int64_t d = at->heads * at->width;
  tarn__tensor *x = check_input(c, graph, at->offsets[at->sentences], 3 * d + at->rest, at->scale, true);
  tarn__tensor *offsets = check_ints(c, graph, at->offsets, at->sentences + 1);
  tarn__param *w = at->softmax ? check_param(c, at->features, at->width, 1.0, false) : NULL;
  const tarn__feature_map_spec map = {
      .heads = at->heads, .width = at->width, .features = at->features, .key_column = d + at->rest};
  tarn__tensor *phi = tarn__feature_map(graph, x, w, map);
  tarn__tensor *start = at->carried ? linear_states(c, graph, at) : NULL;
  tarn__tensor *end = at->carried ? linear_states(c, graph, at) : NULL;
  check_output(c, tarn__linear_attention(graph, phi, x, offsets, linear_spec(at), start, end));
  if (!at->chained) return;
  // What was written to the end is read, behind it, as a start.
  tarn__tensor *last = linear_states(c, graph, at);
  check_output(c, tarn__linear_attention(graph, phi, x, offsets, linear_spec(at), end, last));
}

#endif

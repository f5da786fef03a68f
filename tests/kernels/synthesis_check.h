// What the tests of synthetic attention share: a graph of it in any form.
#ifndef TARN_TESTS_SYNTHESIS_CHECK_H
#define TARN_TESTS_SYNTHESIS_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/synthesis.h"

typedef struct synthesis_shape {
  tarn__synthesis_form form;
  int64_t heads, d, places, left, width;  // width: of the source, of each head
  bool causal, mix, bias;
  int sentences;
  const int32_t *offsets;
} synthesis_shape;

static inline int64_t synthesis_longest(const synthesis_shape *s) {
  int64_t longest = 0;
  for (int i = 0; i < s->sentences; i++)
    if (s->offsets[i + 1] - s->offsets[i] > longest) longest = s->offsets[i + 1] - s->offsets[i];
  return longest;
}

static inline tarn__synthesis_spec synthesis_spec(const synthesis_shape *s) {
  return (tarn__synthesis_spec){.form = s->form,
                                .heads = s->heads,
                                .d = s->d,
                                .places = s->places,
                                .left = s->left,
                                .longest = synthesis_longest(s),
                                .causal = s->causal};
}

// What the logits of `rows` rows are made of.
static inline tarn__synthesis_logits synthesis_logits(check *c, tarn__graph *graph, const synthesis_shape *s,
                                                      int64_t rows) {
  const bool random = s->form == TARN__SYNTHESIS_RANDOM, dense = s->form == TARN__SYNTHESIS_DENSE;
  tarn__synthesis_logits logits = {0};
  if (!random) logits.source = check_input(c, graph, rows, s->heads * s->width, 1.0, true);
  if (random) logits.weight = check_param(c, s->heads * s->places, s->places, 1.0, true);
  if (dense) logits.weight = check_param(c, s->heads * s->places, s->width, 0.5, true);
  if (s->bias) logits.bias = check_param(c, 1, s->heads * s->places, 0.5, true);
  if (s->mix) logits.mix = check_param(c, 1, 2, 1.0, true);
  return logits;
}

// Two of them, the second with the first's weights, values and sources, so that all gradients add up.
static inline void synthesis_build(check *c, tarn__graph *graph, const void *spec) {
  const synthesis_shape *s = spec;
  const int64_t rows = s->offsets[s->sentences];
  tarn__tensor *x = check_input(c, graph, rows, (s->mix ? 3 : 1) * s->d, 1.0, true);
  tarn__tensor *offsets = check_ints(c, graph, s->offsets, s->sentences + 1);
  const tarn__synthesis_logits logits = synthesis_logits(c, graph, s, rows);
  const tarn__synthesis_spec first = synthesis_spec(s);
  tarn__synthesis_spec second = first;
  second.causal = !first.causal;
  check_output(c, tarn__synthesis(graph, x, logits, offsets, first));
  check_output(c, tarn__synthesis(graph, x, logits, offsets, second));
}

#endif

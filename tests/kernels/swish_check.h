// A graph of Swish with beta, for kernel_check.h.
#ifndef TARN_TESTS_SWISH_CHECK_H
#define TARN_TESTS_SWISH_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/swish_beta.h"

typedef struct swish_shape {
  int64_t rows, cols;  // of the result
  bool gated, learned, input_grad;
  int uses;  // 2: both results count, so that gradients add up
} swish_shape;

static inline void swish_build(check *c, tarn__graph *graph, const void *spec) {
  const swish_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->gated ? 2 * s->cols : s->cols, 2.0, s->input_grad);
  tarn__param *beta = s->learned ? check_param(c, 1, 1, 1.0, true) : NULL;
  for (int i = 0; i < s->uses; i++) check_output(c, tarn__swish_beta(graph, x, NULL, 1.75, beta, s->gated));
}

#endif

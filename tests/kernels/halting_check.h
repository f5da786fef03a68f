// Three steps of adaptive computation time, for kernel_check.h.
#ifndef TARN_TESTS_HALTING_CHECK_H
#define TARN_TESTS_HALTING_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/halting.h"
#include "ops/weighted_rows.h"

enum { HALTING_STEPS = 3, HALTING_ROWS = 40 };

typedef struct halting_shape {
  int64_t rows, cols;
  double threshold;
  bool z_grad, x_grad;
} halting_shape;

// The sum of the states, each row times its weight.
static inline void halting_build(check *c, tarn__graph *graph, const void *spec) {
  const halting_shape *s = spec;
  int32_t numbers[HALTING_ROWS];
  tarn__tensor *y = NULL, *before = NULL;
  for (int r = 0; r < HALTING_ROWS; r++) numbers[r] = r;
  tarn__tensor *ids = check_ints(c, graph, numbers, s->rows);
  ids->rows = s->rows;
  ids->cols = 1;
  for (int t = 0; t < HALTING_STEPS; t++) {
    tarn__tensor *z = check_input(c, graph, s->rows, 1, 1.5, s->z_grad);
    tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
    const tarn__halting_spec step = {.threshold = s->threshold, .last = t == HALTING_STEPS - 1};
    const tarn__halted halted = tarn__halting(graph, z, before, step);
    tarn__tensor *part = tarn__weighted_rows(graph, x, ids, halted.weight);
    y = y ? tarn__residual_norm(graph, y, part, 0.0, (tarn__norm){0}).sum : part;
    before = halted.sum;
  }
  check_output(c, y);
}

static const halting_shape halting_shapes[] = {{1, 8, 0.9, true, true},
                                               {HALTING_ROWS, 5, 0.9, true, true},
                                               {17, 24, 0.5, true, false},
                                               {17, 24, 0.99, false, true}};

#endif

// What stands on branches, for tests of kernels and of gradients: the op scale, and DeepNorm's factor on x.
#ifndef TARN_TESTS_BRANCH_CHECK_H
#define TARN_TESTS_BRANCH_CHECK_H

#include "kernels/norm_check.h"
#include "ops/scale.h"

typedef struct branch_shape {
  int64_t rows, cols;
  bool gain, shift, x_grad, trained;
  bool twice;  // x is read by another node behind it too
} branch_shape;

static inline void branch_build(check *c, tarn__graph *graph, const void *spec) {
  const branch_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
  tarn__param *gain = s->gain ? check_param_around(c, 1, 1, 0.7, 0.2, s->trained) : NULL;
  tarn__param *shift = s->shift ? check_param(c, 1, 1, 0.5, s->trained) : NULL;
  tarn__tensor *y = tarn__scale(graph, x, gain, shift);
  if (s->twice) y = tarn__residual_norm(graph, y, tarn__scale(graph, x, gain, NULL), 0.0, (tarn__norm){0}).sum;
  check_output(c, y);
}

static const struct {
  const char *name;
  branch_shape s;
} branch_cases[] = {
    {"gain", {33, 100, true, false, true, true, false}},
    {"shift", {33, 100, false, true, true, true, false}},
    {"gain and shift", {9, 72, true, true, true, true, false}},
    {"gain of data", {9, 72, true, false, false, true, false}},
    {"frozen gain", {9, 24, true, false, true, false, false}},
    {"frozen shift", {9, 24, false, true, true, false, false}},
    {"gain twice", {17, 40, true, true, true, true, true}},
    {"no rows", {0, 24, true, true, true, true, false}},
};

// The mean of `count` inputs by shares, twice.
typedef struct share_shape {
  int64_t rows, cols;
  int count;
  bool x_grad, trained;
} share_shape;

static inline void share_build(check *c, tarn__graph *graph, const void *spec) {
  const share_shape *s = spec;
  tarn__param *shares = check_param(c, 1, s->count, 1.0, s->trained);
  for (int time = 0; time < 2; time++) {
    tarn__tensor *y = NULL;
    for (int k = 0; k < s->count; k++) {
      tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
      tarn__tensor *part = tarn__scale_share(graph, x, shares, k);
      y = y ? tarn__residual_norm(graph, y, part, 0.0, (tarn__norm){0}).sum : part;
    }
    check_output(c, y);
  }
}

static const share_shape share_cases[] = {
    {33, 20, 3, true, true}, {9, 72, 2, false, true}, {9, 24, 4, true, false}, {5, 7, 1, true, true}};

// y = Norm(skip x + branch).
typedef struct deep_shape {
  int64_t rows, cols;
  double skip, dropout;
  bool x_grad, branch_grad;
  tarn__norm_form form;
} deep_shape;

static inline void deep_build(check *c, tarn__graph *graph, const void *spec) {
  const deep_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
  tarn__tensor *branch = check_input(c, graph, s->rows, s->cols, 1.0, s->branch_grad);
  tarn__norm norm = norm_params(c, s->form, s->cols, true);
  norm.skip = s->skip;
  tarn__tensor *y = tarn__residual_norm(graph, x, branch, s->dropout, norm).y;
  // Twice, so that the gradient of x comes from two nodes.
  check_output(c, s->x_grad ? tarn__residual_norm(graph, x, y, s->dropout, norm).y : y);
}

static const struct {
  const char *name;
  deep_shape s;
} deep_cases[] = {
    {"deepnorm", {17, 100, 2.5, 0.3, true, true, TARN__NORM_LAYER}},
    {"deepnorm without dropout", {17, 24, 1.7, 0.0, true, true, TARN__NORM_LAYER}},
    {"deepnorm, branch alone", {17, 24, 2.5, 0.3, false, true, TARN__NORM_LAYER}},
    {"deepnorm, x alone", {17, 24, 2.5, 0.3, true, false, TARN__NORM_RMS}},
    {"deepnorm, scale", {5, 40, 6.5, 0.1, true, true, TARN__NORM_SCALE}},
};

#endif

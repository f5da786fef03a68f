// The checks that norms of all forms go through: the fast kernels of residual_norm against the reference.
#ifndef TARN_TESTS_NORM_CHECK_H
#define TARN_TESTS_NORM_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct norm_shape {
  int64_t rows, cols;
  bool branch, norm, use_sum, use_y;
  double dropout;
  bool x_grad, branch_grad, trained;
  tarn__norm_form form;
} norm_shape;

static inline tarn__norm norm_params(check *c, tarn__norm_form form, int64_t cols, bool trained) {
  const bool scalar = form == TARN__NORM_SCALE;
  tarn__norm norm = {.form = form, .epsilon = 1e-5};
  norm.gain = check_param_around(c, 1, scalar ? 1 : cols, scalar ? sqrt((double)cols) : 1.0, 0.2, trained);
  if (form == TARN__NORM_LAYER) norm.bias = check_param(c, 1, cols, 0.5, trained);
  return norm;
}

// What bf16 is held to. The gradient of the one gain of ScaleNorm is a sum in which much cancels.
static inline double norm_bf16(tarn__norm_form form) { return form == TARN__NORM_SCALE ? 0.1 : 0.015; }

static inline void norm_build(check *c, tarn__graph *graph, const void *spec) {
  const norm_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, s->x_grad);
  tarn__tensor *branch = s->branch ? check_input(c, graph, s->rows, s->cols, 1.0, s->branch_grad) : NULL;
  const tarn__norm norm = s->norm ? norm_params(c, s->form, s->cols, s->trained) : (tarn__norm){0};
  tarn__residual_out out = tarn__residual_norm(graph, x, branch, s->dropout, norm);
  if (s->use_sum) check_output(c, out.sum);
  if (s->use_y) check_output(c, out.y);
}

static inline void norm_check_sizes(tarn__norm_form form) {
  static const int64_t rows[] = {1, 2, 15, 17, 257}, cols[] = {8, 24, 100, 136, 512};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
      char name[80];
      snprintf(name, sizeof name, "%lld x %lld", (long long)rows[r], (long long)cols[k]);
      norm_shape post = {rows[r], cols[k], true, true, false, true, 0.3, true, true, true, form};
      check_kernels(norm_build, &post, name, 1e-5, norm_bf16(form));
      norm_shape pre = {rows[r], cols[k], true, true, true, true, 0.1, true, true, true, form};
      check_kernels(norm_build, &pre, name, 1e-5, norm_bf16(form));
    }
}

// Widths that only a card distinguishes: of rows in one warp and of rows in a block, and more rows than its blocks take
// at once.
static inline void norm_check_widths(tarn__norm_form form) {
  static const int64_t cols[] = {700, 1000, 1024, 1030, 2504, 5000}, rows[] = {19, 9, 3, 5, 3, 3};
  if (check_device() == &tarn__device_cpu) return;
  for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
    const norm_shape pre = {rows[k], cols[k], true, true, true, true, 0.1, true, true, true, form};
    check_kernels(norm_build, &pre, "wide rows", 1e-5, norm_bf16(form));
  }
  const norm_shape many = {2300, 24, true, true, true, true, 0.1, true, true, true, form};
  check_kernels(norm_build, &many, "many rows", 1e-5, norm_bf16(form));
}

static inline void norm_check_parts(tarn__norm_form form) {
  const struct {
    const char *name;
    norm_shape s;
  } cases[] = {
      {"norm alone", {33, 100, false, true, false, true, 0.0, true, false, true, form}},
      {"frozen norm alone", {33, 100, false, true, false, true, 0.0, true, false, false, form}},
      {"trained norm of data", {33, 100, false, true, false, true, 0.0, false, false, true, form}},
      {"sum alone", {33, 100, true, false, true, false, 0.3, true, true, false, form}},
      {"sum alone without dropout", {33, 100, true, false, true, false, 0.0, true, true, false, form}},
      {"sum alone, branch", {33, 100, true, false, true, false, 0.3, false, true, false, form}},
      {"sum alone, x", {33, 100, true, false, true, false, 0.3, true, false, false, form}},
      {"no dropout", {33, 100, true, true, false, true, 0.0, true, true, true, form}},
      {"frozen, branch alone", {33, 100, true, true, false, true, 0.5, false, true, false, form}},
      {"frozen, x alone", {33, 100, true, true, true, true, 0.5, true, false, false, form}},
      {"y unused", {33, 100, true, true, true, false, 0.2, true, true, false, form}},
      {"no rows", {0, 24, true, true, true, true, 0.2, true, true, true, form}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_kernels(norm_build, &cases[i].s, cases[i].name, 1e-5, norm_bf16(form));
}

// The sum as input of a second norm: gradients arrive from two sides, in place.
static inline void norm_build_twice(check *c, tarn__graph *graph, const void *spec) {
  const norm_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->cols, 1.0, true);
  tarn__tensor *branch = check_input(c, graph, s->rows, s->cols, 1.0, true);
  const tarn__norm norm = norm_params(c, s->form, s->cols, true);
  tarn__tensor *first = tarn__residual_norm(graph, x, NULL, 0.0, norm).y;
  tarn__residual_out second = tarn__residual_norm(graph, x, first, s->dropout, norm);
  tarn__residual_out third = tarn__residual_norm(graph, second.sum, branch, s->dropout, norm);
  check_output(c, tarn__residual_norm(graph, second.y, third.sum, s->dropout, norm).y);
  check_output(c, third.y);
}

static inline void norm_check_chains(tarn__norm_form form) {
  norm_shape s = {45, 72, true, true, true, true, 0.25, true, true, true, form};
  check_kernels(norm_build_twice, &s, "chain", 3e-5, form == TARN__NORM_SCALE ? 0.1 : 0.04);
}

static inline void norm_check_evaluation(tarn__norm_form form) {
  norm_shape s = {33, 100, true, true, true, true, 0.3, true, true, true, form};
  check_kernels_mode(norm_build, &s, "without training", false, 1e-5, norm_bf16(form));
}

#endif

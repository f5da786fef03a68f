// Models of one gated_conv for the tests of its kernels and gradients. Include it after cmocka.h.
#ifndef TARN_TESTS_GATED_CONV_CHECK_H
#define TARN_TESTS_GATED_CONV_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct gated_conv_shape {
  const char *name;
  int64_t cols;
  int32_t offsets[6];    // of 5 sentences, some empty
  bool x, u, v, kernel;  // what wants a gradient
} gated_conv_shape;

static const gated_conv_shape gated_conv_shapes[] = {
    {"gated_conv, all", 8, {0, 4, 5, 7, 7, 20}, true, true, true, true},
    {"gated_conv, odd width", 19, {0, 0, 1, 3, 6, 10}, true, true, true, true},
    {"gated_conv, x alone", 5, {0, 2, 4, 6, 8, 9}, true, false, false, false},
    {"gated_conv, gate and kernel", 33, {0, 7, 9, 10, 12, 30}, false, true, false, true},
};
enum { GATED_CONV_SHAPES = sizeof gated_conv_shapes / sizeof *gated_conv_shapes };

static void gated_conv_build(check *c, tarn__graph *graph, const void *spec) {
  const gated_conv_shape *s = spec;
  const int64_t rows = s->offsets[5];
  tarn__tensor *x = check_input(c, graph, rows, s->cols, 1.0, s->x);
  tarn__tensor *u = check_input(c, graph, rows, s->cols, 1.0, s->u);
  tarn__tensor *v = check_input(c, graph, rows, s->cols, 1.0, s->v);
  tarn__tensor *offsets = check_ints(c, graph, s->offsets, 6);
  check_output(c, tarn__gated_conv(graph, x, u, v, offsets, check_param(c, 1, 3 * s->cols, 0.7, s->kernel)));
}

#endif

// Convolutions with a kernel for each channel and what stands beside them in branched convolutions, for the tests of
// kernels and gradients. Include it after cmocka.h.
#ifndef TARN_TESTS_CHANNEL_CONV_CHECK_H
#define TARN_TESTS_CHANNEL_CONV_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct conv_shape {
  int64_t d;
  tarn__taps taps;
  int sentences;
  const int32_t *offsets;
  bool x_grad, trained;
} conv_shape;

static inline void channel_conv_build(check *c, tarn__graph *graph, const void *spec) {
  const conv_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, s->x_grad);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  tarn__param *kernel = check_param(c, 1, s->taps.width * s->d, 0.5, s->trained);
  check_output(c, tarn__channel_conv(graph, x, places, kernel, s->taps));
}

static inline void neighbours_build(check *c, tarn__graph *graph, const void *spec) {
  const conv_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  check_output(c, tarn__neighbours(graph, x, places, s->taps));
}

// All of them as in a layer: inputs with other readers, whose gradients are there already, and a kernel that is used
// twice.
static inline void branches_build(check *c, tarn__graph *graph, const void *spec) {
  const conv_shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, s->x_grad);
  tarn__tensor *wide = check_input(c, graph, s->offsets[s->sentences], 3 * s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  tarn__param *kernel = check_param(c, 1, s->taps.width * s->d, 0.5, s->trained);
  tarn__tensor *y = tarn__channel_conv(graph, x, places, kernel, s->taps);
  tarn__tensor *z = tarn__channel_conv(graph, y, places, kernel, s->taps);
  tarn__tensor *near = tarn__neighbours(graph, y, places, (tarn__taps){.width = 3, .before = 1});
  check_output(
      c, tarn__widen(graph, tarn__glu(graph, tarn__widen(graph, NULL, near, 6 * s->d), TARN__SIGMOID), z, 3 * s->d));
  check_output(c, tarn__widen(graph, wide, y, 3 * s->d));
  check_output(c, tarn__widen(graph, near, near, 3 * s->d));
  check_output(c, z);
}

#endif

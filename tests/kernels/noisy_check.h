// A small model of noisy gating, for the tests of its kernels, gradients and tangents. Include it after cmocka.h.
#ifndef TARN_TESTS_NOISY_CHECK_H
#define TARN_TESTS_NOISY_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/route.h"

typedef struct noisy_shape {
  int64_t rows, d, experts, choices;
  double importance, load;
  bool x, router, noise;  // what wants a gradient
} noisy_shape;

static const noisy_shape noisy_shapes[] = {
    {13, 6, 4, 2, 0.7, 0.0, true, true, true},   {29, 21, 11, 3, 0.0, 1.3, true, true, true},
    {40, 24, 5, 4, 0.5, 0.3, true, true, true},  {17, 33, 6, 2, 0.4, 0.6, false, false, true},
    {9, 16, 3, 2, 0.0, 0.0, true, false, false},
};
enum { NOISY_SHAPES = sizeof noisy_shapes / sizeof *noisy_shapes };

static inline tarn__route_spec noisy_spec(const noisy_shape *s) {
  return (tarn__route_spec){.choices = s->choices,
                            .normalise = 1,
                            .capacity = INFINITY,
                            .share = 0.5,
                            .importance = s->importance,
                            .load = s->load};
}

static inline tarn__routed noisy_route(check *c, tarn__graph *graph, const noisy_shape *s) {
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, s->x);
  tarn__param *router = check_param(c, s->experts, s->d, 0.6, s->router);
  tarn__param *noise = check_param(c, s->experts, s->d, 0.4, s->noise);
  return tarn__route_noisy(graph, x, router, noise, noisy_spec(s));
}

static inline void noisy_build(check *c, tarn__graph *graph, const void *spec) {
  check_output(c, noisy_route(c, graph, spec).gates);
}

#endif

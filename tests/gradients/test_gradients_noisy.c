// Noisy gating: the gradients of its gates and of its two losses against finite differences. The losses are no part of
// a graph's loss: what they add to gradients is compared with differences of their own equations.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/noisy_check.h"

static void gates(void **state) {
  (void)state;
  for (int i = 0; i < NOISY_SHAPES; i++) {
    noisy_shape s = noisy_shapes[i];
    s.importance = s.load = 0.0;
    check_gradients(noisy_build, &s, "gates", 1e-7);
  }
}

// What the node of the last run kept: of each row c, a and n.
static double kept[3 * 40 * 11];

static void keep(const tarn__graph *graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const tarn__tensor *made =
        graph->nodes[i]->op->id == TARN__OP_ROUTE ? graph->nodes[i]->out[TARN__ROUTE_PROBABILITIES] : NULL;
    for (int64_t k = 0; made && k < made->rows * made->cols; k++) kept[k] = ((const double *)made->data)[k];
  }
}

static double squared_variation(const double *sums, int64_t n) {
  double mean = 0.0, squares = 0.0;
  for (int64_t e = 0; e < n; e++) mean += sums[e], squares += sums[e] * sums[e];
  mean /= (double)n;
  return squares / (double)n / (mean * mean) - 1.0;
}

// Equations 3 to 11 of Shazeer et al. 2017, from what was kept, in another way than the kernels have.
static double losses(const noisy_shape *s) {
  double importance[11] = {0}, load[11] = {0};
  for (int64_t r = 0; r < s->rows; r++) {
    const double *c = kept + r * 3 * s->experts, *a = c + s->experts, *n = a + s->experts;
    double h[11], deviation[11], all = 0.0;
    for (int64_t e = 0; e < s->experts; e++)
      deviation[e] = log(1.0 + exp(a[e])) + 1e-6, h[e] = c[e] + n[e] * deviation[e];
    for (int64_t e = 0; e < s->experts; e++) {
      // The k-th largest of the others: k - 1 of them are larger.
      double threshold = NAN;
      for (int64_t i = 0; i < s->experts; i++) {
        int64_t larger = 0;
        for (int64_t j = 0; j < s->experts; j++) larger += j != e && h[j] > h[i];
        if (i != e && larger == s->choices - 1) threshold = h[i];
      }
      load[e] += 0.5 * (1.0 + erf((c[e] - threshold) / deviation[e] / sqrt(2.0)));
      if (h[e] > threshold) all += exp(h[e]);
    }
    for (int64_t e = 0; e < s->experts; e++) {
      int64_t larger = 0;
      for (int64_t j = 0; j < s->experts; j++) larger += h[j] > h[e];
      if (larger < s->choices) importance[e] += exp(h[e]) / all;
    }
  }
  return 0.5 *
         (s->importance * squared_variation(importance, s->experts) + s->load * squared_variation(load, s->experts));
}

static void two_losses(void **state) {
  (void)state;
  enum { POINTS = 4 };
  static const double at[POINTS] = {1.0, -1.0, 2.0, -2.0}, weight[POINTS] = {8.0, -8.0, -1.0, 1.0};
  const double step = 1e-5;
  for (int i = 0; i < 3; i++) {
    const noisy_shape *with = &noisy_shapes[i];
    noisy_shape without = *with;
    without.importance = without.load = 0.0;
    check own, plain;
    check_open(&own);
    check_open(&plain);
    own.after = plain.after = keep;
    check_run(&plain, noisy_build, &without, &tarn__device_reference, TARN__F64, true);
    check_run(&own, noisy_build, with, &tarn__device_reference, TARN__F64, true);
    for (int k = 0; k < own.items; k++) {
      const size_t n = (size_t)(own.item[k].rows * own.item[k].cols), count = n < 20 ? n : 20;
      double found[20], expected[20] = {0};
      for (size_t e = 0; e < count; e++) found[e] = own.item[k].grad[e * n / count] - plain.item[k].grad[e * n / count];
      for (size_t e = 0; e < count; e++) {
        double *value = &plain.item[k].value[e * n / count];
        const double first = *value;
        for (int p = 0; p < POINTS; p++) {
          *value = first + at[p] * step;
          check_run(&plain, noisy_build, &without, &tarn__device_reference, TARN__F64, true);
          expected[e] += weight[p] * losses(with) / (12.0 * step);
        }
        *value = first;
      }
      check_run(&plain, noisy_build, &without, &tarn__device_reference, TARN__F64, true);
      check_close_to(found, expected, count, 1e-6, "losses of noisy gating", "gradient of item", k);
    }
    check_close(&own);
    check_close(&plain);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gates), cmocka_unit_test(two_losses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

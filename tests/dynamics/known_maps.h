// Maps whose exponents are known, with their derivatives, for tests.
#ifndef TARN_TESTS_KNOWN_MAPS_H
#define TARN_TESTS_KNOWN_MAPS_H

#include <math.h>
#include <stdint.h>

#include "dynamics/iterated.h"

// x' = r x (1 - x)
static inline tarn_status logistic_step(void *self, double *x, double *v, int64_t k, int64_t t) {
  const double r = *(const double *)self;
  (void)t;
  for (int64_t j = 0; j < k; j++) v[j] *= r * (1.0 - 2.0 * x[0]);
  x[0] = r * x[0] * (1.0 - x[0]);
  return TARN_STATUS_OK;
}

// x' = 1 - 1.4 x^2 + y, y' = 0.3 x (Henon 1976)
static inline tarn_status henon_step(void *self, double *x, double *v, int64_t k, int64_t t) {
  (void)self, (void)t;
  for (int64_t j = 0; j < k; j++) {
    const double a = v[2 * j], b = v[2 * j + 1];
    v[2 * j] = -2.8 * x[0] * a + b;
    v[2 * j + 1] = 0.3 * a;
  }
  const double old = x[0];
  x[0] = 1.0 - 1.4 * old * old + x[1];
  x[1] = 0.3 * old;
  return TARN_STATUS_OK;
}

static inline void lorenz_slope(double d[3], const double u[3]) {
  d[0] = 10.0 * (u[1] - u[0]);
  d[1] = u[0] * (28.0 - u[2]) - u[1];
  d[2] = u[0] * u[1] - 8.0 / 3.0 * u[2];
}

static inline void lorenz_variation(double d[3], const double u[3], const double v[3]) {
  d[0] = 10.0 * (v[1] - v[0]);
  d[1] = v[0] * (28.0 - u[2]) - u[0] * v[2] - v[1];
  d[2] = v[0] * u[1] + u[0] * v[1] - 8.0 / 3.0 * v[2];
}

// A step of Runge and Kutta's fourth-order method on Lorenz's equations and their variations (1963), *self in time.
static inline tarn_status lorenz_step(void *self, double *x, double *v, int64_t k, int64_t t) {
  static const double share[4] = {0.0, 0.5, 0.5, 1.0};
  const double h = *(const double *)self;
  double slopes[4][3], at[4][3];
  (void)t;
  for (int s = 0; s < 4; s++) {
    for (int i = 0; i < 3; i++) at[s][i] = s ? x[i] + share[s] * h * slopes[s - 1][i] : x[i];
    lorenz_slope(slopes[s], at[s]);
  }
  for (int64_t j = 0; j < k; j++) {
    double changes[4][3], u[3];
    for (int s = 0; s < 4; s++) {
      for (int i = 0; i < 3; i++) u[i] = s ? v[3 * j + i] + share[s] * h * changes[s - 1][i] : v[3 * j + i];
      lorenz_variation(changes[s], at[s], u);
    }
    for (int i = 0; i < 3; i++)
      v[3 * j + i] += h / 6.0 * (changes[0][i] + 2.0 * changes[1][i] + 2.0 * changes[2][i] + changes[3][i]);
  }
  for (int i = 0; i < 3; i++) x[i] += h / 6.0 * (slopes[0][i] + 2.0 * slopes[1][i] + 2.0 * slopes[2][i] + slopes[3][i]);
  return TARN_STATUS_OK;
}

// x' = A x
typedef struct linear_map {
  int64_t n;
  const double *a;  // [n, n]
} linear_map;
static inline void linear_product(const linear_map *m, double *x) {
  double y[64];
  for (int64_t i = 0; i < m->n; i++) {
    y[i] = 0.0;
    for (int64_t c = 0; c < m->n; c++) y[i] += m->a[i * m->n + c] * x[c];
  }
  for (int64_t i = 0; i < m->n; i++) x[i] = y[i];
}
static inline tarn_status linear_step(void *self, double *x, double *v, int64_t k, int64_t t) {
  const linear_map *m = self;
  (void)t;
  linear_product(m, x);
  for (int64_t j = 0; j < k; j++) linear_product(m, v + j * m->n);
  return TARN_STATUS_OK;
}

#endif

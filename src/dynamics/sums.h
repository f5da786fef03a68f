// Sums over long vectors in explicit order: eight lanes, added at the end.
#ifndef TARN_DYNAMICS_SUMS_H
#define TARN_DYNAMICS_SUMS_H

#include <stdint.h>

enum { TARN__SUM_LANES = 8 };

static inline double tarn__sum_lanes(const double lanes[TARN__SUM_LANES]) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// a . b
static inline double tarn__sum_product(const double *a, const double *b, int64_t n) {
  double lanes[TARN__SUM_LANES] = {0};
  int64_t i = 0;
  for (; i + TARN__SUM_LANES <= n; i += TARN__SUM_LANES)
    for (int l = 0; l < TARN__SUM_LANES; l++) lanes[l] += a[i + l] * b[i + l];
  for (int l = 0; i + l < n; l++) lanes[l] += a[i + l] * b[i + l];
  return tarn__sum_lanes(lanes);
}

// |a - b|^2
static inline double tarn__sum_difference(const double *a, const double *b, int64_t n) {
  double lanes[TARN__SUM_LANES] = {0};
  int64_t i = 0;
  for (; i + TARN__SUM_LANES <= n; i += TARN__SUM_LANES)
    for (int l = 0; l < TARN__SUM_LANES; l++) lanes[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
  for (int l = 0; i + l < n; l++) lanes[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
  return tarn__sum_lanes(lanes);
}

#endif

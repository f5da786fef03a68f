// The product of one row with a structured orthogonal matrix in plain C, on TARN_REAL: used by the reference in both of
// its types, and to compute the matrix of signs.
#ifndef TARN_OPS_HADAMARD_ROW_H
#define TARN_OPS_HADAMARD_ROW_H

#include <math.h>

#include "ops/hadamard.h"

// x = H x for n elements, n a power of two.
static inline void tarn__hadamard_transform(TARN_REAL *x, int64_t n) {
  for (int64_t h = 1; h < n; h *= 2)
    for (int64_t i = 0; i < n; i++) {
      if (i & h) continue;
      TARN_REAL a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  TARN_REAL scale = (TARN_REAL)(1.0 / sqrt((double)n));
  for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

// x = Q x, or transposed x = Q^T x.
static inline void tarn__hadamard_rotate(TARN_REAL *x, const TARN_REAL *signs, const tarn__hadamard_shape *shape,
                                         bool transposed) {
  int64_t n = shape->width;
  for (int step = 0; step < shape->rounds; step++) {
    int round = transposed ? shape->rounds - 1 - step : step;
    const TARN_REAL *sign = signs + round * n;
    for (int64_t i = 0; i < n && !transposed; i++) x[i] *= sign[i];
    tarn__hadamard_transform(x + tarn__hadamard_start(shape, round), shape->window);
    for (int64_t i = 0; i < n && transposed; i++) x[i] *= sign[i];
  }
}

// One row: y [blocks * out] = x [in] Q^T. work: width elements.
static inline void tarn__hadamard_row(TARN_REAL *y, const TARN_REAL *x, const TARN_REAL *signs,
                                      const tarn__hadamard_shape *shape, TARN_REAL *work) {
  int64_t n = shape->width;
  for (int64_t i = 0; i < shape->blocks * shape->out; i++) y[i] = 0;
  for (int64_t t = 0; t < shape->blocks * shape->parts; t++) {
    tarn__hadamard_ends ends = tarn__hadamard_ends_of(shape, t);
    for (int64_t i = 0; i < n; i++) work[i] = i < ends.in_count ? x[ends.in_at + i] : 0;
    tarn__hadamard_rotate(work, signs + tarn__hadamard_signs_at(shape, t), shape, false);
    for (int64_t i = 0; i < ends.out_count; i++) y[ends.out_at + i] += (TARN_REAL)shape->scale * work[i];
  }
}

#endif

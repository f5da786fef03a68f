#include "dynamics/frames.h"

#include <math.h>

#include "dynamics/sums.h"

// Removes the components of `vector` along the first `count` vectors.
static void project(double *vector, const double *vectors, int64_t stride, int64_t n, int64_t count) {
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < count; i++) {
      const double *q = vectors + i * stride;
      const double along = tarn__sum_product(q, vector, n);
      for (int64_t c = 0; c < n; c++) vector[c] -= along * q[c];
    }
}

static double largest(const double *vector, int64_t n) {
  double most = 0.0;
  for (int64_t c = 0; c < n; c++) {
    const double size = fabs(vector[c]);
    if (!(size <= most)) most = size;
    if (isnan(most)) return NAN;
  }
  return most;
}

static void draw(double *vector, int64_t n, tarn__random *random) {
  for (int64_t c = 0; c < n; c++) vector[c] = tarn__random_normal(random);
}

static void multiply(double *vector, int64_t n, double factor) {
  for (int64_t c = 0; c < n; c++) vector[c] *= factor;
}

// Divides the vector by its norm, which is returned; 0 or NAN if that is impossible. It is scaled first if squares
// would overflow or vanish.
static double normalise(double *vector, int64_t n) {
  const double square = tarn__sum_product(vector, vector, n);
  int exponent;
  if (square > 1e-200 && square < 1e200) {
    multiply(vector, n, 1.0 / sqrt(square));
    return sqrt(square);
  }
  const double most = largest(vector, n);
  if (!(most > 0.0) || !isfinite(most)) return isfinite(most) ? 0.0 : NAN;
  frexp(most, &exponent);
  multiply(vector, n, ldexp(1.0, -exponent / 2));
  multiply(vector, n, ldexp(1.0, -(exponent - exponent / 2)));
  const double norm = sqrt(tarn__sum_product(vector, vector, n));
  multiply(vector, n, 1.0 / norm);
  return ldexp(norm, exponent);
}

void tarn__frame_orthonormalise(double *vectors, int64_t stride, int64_t n, int64_t k, double *diagonal,
                                tarn__random *random) {
  for (int64_t j = 0; j < k; j++) {
    double *v = vectors + j * stride;
    // The rounding error of a vector in the span of the others is no new direction.
    const double before = normalise(v, n);
    double share = 0.0;
    if (before > 0.0) {
      project(v, vectors, stride, n, j);
      share = normalise(v, n);
    }
    const bool vanished = !(before > 0.0) || !(share > 1e-15 * sqrt((double)n));
    if (diagonal) diagonal[j] = isnan(before) ? NAN : vanished ? 0.0 : before * share;
    while (vanished) {
      draw(v, n, random);
      normalise(v, n);
      project(v, vectors, stride, n, j);
      if (normalise(v, n) > 1e-6) break;
    }
  }
}

void tarn__frame_random(double *vectors, int64_t stride, int64_t n, int64_t k, tarn__random *random) {
  for (int64_t j = 0; j < k; j++) draw(vectors + j * stride, n, random);
  tarn__frame_orthonormalise(vectors, stride, n, k, NULL, random);
}

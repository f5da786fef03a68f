#include "dynamics/token_measures.h"

#include <math.h>

#include "dynamics/sums.h"

static void centre(double *centred, const double *x, int64_t tokens, int64_t width) {
  for (int64_t c = 0; c < width; c++) {
    double sum = 0.0;
    for (int64_t r = 0; r < tokens; r++) sum += x[r * width + c];
    const double mean = sum / (double)tokens;
    for (int64_t r = 0; r < tokens; r++) centred[r * width + c] = x[r * width + c] - mean;
  }
}

tarn__token_measures tarn__token_measures_of(const double *x, int64_t tokens, int64_t width, double *centred) {
  tarn__token_measures m = {NAN, NAN, NAN, NAN};
  if (tokens < 2) return m;
  double distances = 0.0, cosines = 0.0, trace = 0.0, squares = 0.0, all = 0.0;
  int64_t angles = 0;
  centre(centred, x, tokens, width);
  for (int64_t i = 0; i < tokens; i++) {
    const double *xi = x + i * width, *ci = centred + i * width;
    const double own = tarn__sum_product(xi, xi, width), spread = tarn__sum_product(ci, ci, width);
    all += own;
    trace += spread;
    squares += spread * spread;
    for (int64_t j = 0; j < i; j++) {
      const double *xj = x + j * width;
      const double across = tarn__sum_product(ci, centred + j * width, width);
      const double lengths = sqrt(own) * sqrt(tarn__sum_product(xj, xj, width));
      distances += sqrt(tarn__sum_difference(xi, xj, width));
      squares += 2.0 * across * across;  // the Gram matrix has the eigenvalues of the covariance
      if (!(lengths > 0.0)) continue;
      cosines += tarn__sum_product(xi, xj, width) / lengths;
      angles++;
    }
  }
  m.distance = distances / (0.5 * (double)tokens * (double)(tokens - 1));
  if (angles > 0) m.cosine = cosines / (double)angles;
  if (squares > 0.0) m.participation = trace * trace / squares;
  if (all > 0.0) m.collapse = sqrt(trace / all);
  return m;
}

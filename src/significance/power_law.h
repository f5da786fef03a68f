// Fits of sums of powers, L = c + sum_k a_k x_k^-b_k, to positive numbers, by the Huber loss of differences of
// logarithms (Hoffmann et al. 2022, "Training compute-optimal large language models", D.3).
#ifndef TARN_SIGNIFICANCE_POWER_LAW_H
#define TARN_SIGNIFICANCE_POWER_LAW_H

#include <stdbool.h>
#include <stddef.h>

enum { TARN__LAW_AXES = 2, TARN__LAW_UNKNOWNS = 2 * TARN__LAW_AXES + 1 };

// Exponents stay within these: a smaller one cannot be told from a constant.
#define TARN__LAW_LEAST_EXPONENT 1e-3
#define TARN__LAW_MOST_EXPONENT 4.0

// log a_k is that at the middle of the logarithms of x_k, where it depends least on b_k.
typedef struct tarn__law {
  size_t axes;
  double middle[TARN__LAW_AXES], log_a[TARN__LAW_AXES], b[TARN__LAW_AXES], log_c;
} tarn__law;

typedef struct tarn__law_points {
  const double *log_x;     // (count, axes)
  const double *log_loss;  // (count)
  size_t count, axes;
  double huber;
} tarn__law_points;

// The best of many first values.
void tarn__law_fit(tarn__law *law, const tarn__law_points *points);
// The best from first values near those of `law`, for points like those it was fitted to.
void tarn__law_refit(tarn__law *law, const tarn__law_points *points);
// log L at log x (axes).
double tarn__law_at(const tarn__law *law, const double *log_x);
// log a_k of x itself.
double tarn__law_log_a(const tarn__law *law, size_t axis);
// With one axis: log x at which L is this; NAN: nowhere.
double tarn__law_inverse(const tarn__law *law, double log_loss);
// Whether an exponent is at the end of its range.
bool tarn__law_at_bound(const tarn__law *law);

#endif

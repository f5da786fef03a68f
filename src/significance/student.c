#include "significance/student.h"

#include <math.h>

// Beyond this the normal distribution is more accurate than the logarithms of the gamma function.
#define FREEDOM_MOST 1e6

// The continued fraction of the incomplete beta function (NIST Digital Library of Mathematical Functions, 8.17.22),
// from its front by Lentz's method. Converges fast for x < (a + 1) / (a + b + 2).
static double fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double value = d;
  for (int m = 1; m <= 10000; m++) {
    double change = 1;
    for (int odd = 0; odd < 2; odd++) {
      double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                        : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      if (fabs(c) < tiny) c = tiny;
      value *= c * d;
      change = fabs(c * d - 1);
    }
    if (change < 1e-15) break;
  }
  return value;
}

// The regularised incomplete beta function I_x(a, b); y is 1 - x, passed to keep its digits.
static double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0 || y <= 0) return x <= 0 ? 0 : 1;
  double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
  return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, y) / b;
}

double tarn__student_p(double t, double freedom) {
  if (isnan(t) || isnan(freedom)) return NAN;
  if (isinf(t)) return 0;
  if (freedom > FREEDOM_MOST) return erfc(fabs(t) / sqrt(2));
  double sum = freedom + t * t;
  return incomplete_beta(freedom / 2, 0.5, freedom / sum, t * t / sum);
}

double tarn__student_quantile(double p, double freedom) {
  double low = 0;
  double high = 2;
  while (tarn__student_p(high, freedom) > p) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    if (tarn__student_p(middle, freedom) > p)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

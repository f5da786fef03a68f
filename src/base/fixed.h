// Functions of doubles that have equal bits on every machine, independent of its library: only operations that IEEE 754
// rounds exactly are used, in a fixed order. Include it only where a*b+c is not contracted (CMakeLists.txt).
#ifndef TARN_BASE_FIXED_H
#define TARN_BASE_FIXED_H

#include <math.h>

#include "base/host_device.h"

// Natural logarithm of x > 0: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), then the series of artanh.
static inline TARN__HOST_DEVICE double tarn__fixed_log(double x) {
  int exponent;
  double m = frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    exponent--;
  }
  double t = (m - 1.0) / (m + 1.0);
  double t2 = t * t;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2.0 * t * sum + exponent * 0.69314718055994530942;
}

// cos(2 pi u) for u in [0, 1) by reduction to an eighth of a turn and Taylor series.
static inline TARN__HOST_DEVICE double tarn__fixed_cos_turn(double u) {
  double v = u < 0.5 ? u : 1.0 - u;  // cos is even: v in [0, 1/2]
  double sign = 1.0;
  if (v > 0.25) {  // cos(pi - x) = -cos(x)
    v = 0.5 - v;
    sign = -1.0;
  }
  double x = v * 6.28318530717958647692;  // in [0, pi/2]
  double x2 = x * x;
  double sum = 1.0;
  for (int k = 22; k >= 2; k -= 2) sum = 1.0 - x2 / ((k - 1) * k) * sum;
  return sign * sum;
}

// e^x for |x| < 700: x = n ln 2 + r with |r| <= ln 2 / 2, then the series of e^r.
static inline TARN__HOST_DEVICE double tarn__fixed_exp(double x) {
  const double n = floor(x / 0.69314718055994530942 + 0.5);
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;  // ln 2 in two parts
  double sum = 1.0;
  for (int k = 17; k >= 1; k--) sum = 1.0 + r / k * sum;
  return ldexp(sum, (int)n);
}

#endif

#include "eval/wilson.h"

#include <math.h>

void tarn__wilson(double *low, double *high, int64_t right, int64_t count) {
  const double z = 1.959963984540054;
  const double n = (double)count, p = (double)right / n;
  const double middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
  const double half = z * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n)) / (1.0 + z * z / n);
  // Where none or all count, rounding must not put the share outside.
  *low = right == 0 ? 0.0 : middle - half;
  *high = right == count ? 1.0 : middle + half;
}

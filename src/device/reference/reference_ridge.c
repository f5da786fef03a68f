#include "device/reference/reference_ridge.h"

#include <math.h>

// Element j of sample t, x followed by y.
static double element(const tarn__ridge *ridge, int64_t t, int64_t j) {
  if (j < ridge->wide) return ridge->waiting[t * ridge->pitch + j];
  return ridge->waiting_classes[t] == j - ridge->inputs ? 1.0 : 0.0;
}

tarn_status tarn__reference_ridge_add(const tarn__device *device, const tarn__ridge *ridge) {
  (void)device;
  for (int64_t t = 0; t < ridge->waiting_count; t++)
    for (int64_t j = 0; j < ridge->width; j++) {
      const double z = element(ridge, t, j);
      ridge->totals[j] += z;
      for (int64_t i = 0; i <= j && i < ridge->inputs; i++)
        ridge->products[i * ridge->width + j] += ridge->waiting[t * ridge->pitch + i] * z;
    }
  return TARN_STATUS_OK;
}

tarn_status tarn__reference_ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows,
                                       tarn__dtype dtype, int64_t first, int64_t count) {
  (void)device;
  (void)dtype;  // F32: the reference has no kernels for BF16
  for (int64_t t = 0; t < count; t++)
    for (int64_t i = 0; i < ridge->inputs; i++)
      ridge->waiting[(ridge->waiting_count + t) * ridge->pitch + i] =
          (double)((const float *)rows)[(first + t) * ridge->inputs + i];
  return TARN_STATUS_OK;
}

static bool factorise(double *a, int64_t n, double least) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i; j < n; j++) {
      double rest = a[i * n + j];
      for (int64_t k = 0; k < i; k++) rest -= a[k * n + i] * a[k * n + j];
      if (j == i && !(rest > least)) return false;
      a[i * n + j] = j == i ? sqrt(rest) : rest / a[i * n + i];
    }
  return true;
}

tarn_status tarn__reference_cholesky(const tarn__device *device, bool *done, double *a, int64_t n, double least) {
  (void)device;
  *done = factorise(a, n, least);
  return TARN_STATUS_OK;
}

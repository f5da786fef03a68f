#include "device/host_memory.h"

#include <math.h>
#include <string.h>

tarn_status tarn__host_copy(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_fill(void *to, unsigned char byte, size_t bytes) {
  memset(to, byte, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_absolute_sum(double *sum, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) *sum += fabs((double)x[i]);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_add_scaled(float *sums, const void *values, size_t n, double weight) {
  for (size_t i = 0; i < n; i++) {
    float value;
    memcpy(&value, (const char *)values + i * sizeof value, sizeof value);
    sums[i] += (float)(weight * (double)value);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__host_synchronise(void) { return TARN_STATUS_OK; }

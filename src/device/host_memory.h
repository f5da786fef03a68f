// Memory of devices that compute in the memory of the host, where a copy is a memcpy and nothing is ever under way.
#ifndef TARN_DEVICE_HOST_MEMORY_H
#define TARN_DEVICE_HOST_MEMORY_H

#include "device/device.h"

tarn_status tarn__host_copy(void *to, const void *from, size_t bytes) TARN_CHECKED;
tarn_status tarn__host_fill(void *to, unsigned char byte, size_t bytes) TARN_CHECKED;
tarn_status tarn__host_synchronise(void) TARN_CHECKED;

// Work that is the same on all of them.
tarn_status tarn__host_absolute_sum(double *sum, const float *x, size_t n) TARN_CHECKED;
tarn_status tarn__host_add_scaled(float *sums, const void *values, size_t n, double weight) TARN_CHECKED;

// For the entry of such a device.
#define TARN__HOST_MEMORY                                                                       \
  .host_memory = true, .allocate = tarn__alloc, .free = tarn__free, .copy_in = tarn__host_copy, \
  .copy_out = tarn__host_copy, .copy = tarn__host_copy, .fill = tarn__host_fill,                \
  .synchronise = tarn__host_synchronise, .absolute_sum = tarn__host_absolute_sum, .add_scaled = tarn__host_add_scaled

#endif

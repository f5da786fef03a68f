// Shared functions of devices that compute in host memory: a copy is a memcpy, every call is synchronous, and there is
// one device of each type.
#ifndef TARN_DEVICE_HOST_MEMORY_H
#define TARN_DEVICE_HOST_MEMORY_H

#include "device/device.h"

tarn_status tarn__host_allocate(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                                size_t size) TARN_CHECKED;
void tarn__host_free(const tarn__device *device, void *memory);
tarn_status tarn__host_memory(const tarn__device *device, size_t *available, size_t *total) TARN_CHECKED;
tarn_status tarn__host_copy(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                            size_t bytes) TARN_CHECKED;
tarn_status tarn__host_fill(const tarn__device *device, tarn__device_stream *stream, void *to, unsigned char byte,
                            size_t bytes) TARN_CHECKED;
tarn_status tarn__host_move_rows(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                                 size_t bytes, const int32_t *numbers, int64_t rows) TARN_CHECKED;
tarn_status tarn__host_add_loss(const tarn__device *device, struct tarn__step_numbers *numbers,
                                const double *loss) TARN_CHECKED;
tarn_status tarn__host_decide(const tarn__device *device, struct tarn__step_numbers *numbers,
                              const struct tarn__step_rule *rule) TARN_CHECKED;
tarn_status tarn__host_absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) TARN_CHECKED;
tarn_status tarn__host_add_scaled(const tarn__device *device, float *sums, const void *values, size_t n,
                                  double weight) TARN_CHECKED;

// For `open` of such a type: only number 0 exists.
tarn_status tarn__host_open(const tarn__device **device, const tarn__device *only, int ordinal) TARN_CHECKED;

// Fields for the type of such a device.
#define TARN__HOST_MEMORY                                                                                     \
  .host_memory = true, .allocate = tarn__host_allocate, .free = tarn__host_free, .memory = tarn__host_memory, \
  .copy_in = tarn__host_copy, .send = tarn__host_copy, .copy_out = tarn__host_copy, .copy = tarn__host_copy,  \
  .fill = tarn__host_fill, .move_rows = tarn__host_move_rows, .add_loss = tarn__host_add_loss,                \
  .decide = tarn__host_decide, .absolute_sum = tarn__host_absolute_sum, .add_scaled = tarn__host_add_scaled

#endif

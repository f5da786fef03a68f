#include "device/host_memory.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "device/step_numbers.h"
#include "tarn/plan.h"

tarn_status tarn__host_open(const tarn__device **device, const tarn__device *only, int ordinal) {
  TARN_REQUIRE(ordinal <= 0, USAGE, "there is one device %s (expected %s or %s:0)", only->name, only->name, only->name);
  *device = only;
  return TARN_STATUS_OK;
}

tarn_status tarn__host_allocate(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                                size_t size) {
  (void)device;
  return tarn__alloc(out, kind, count, size);
}

void tarn__host_free(const tarn__device *device, void *memory) {
  (void)device;
  tarn__free(memory);
}

tarn_status tarn__host_memory(const tarn__device *device, size_t *available, size_t *total) {
  (void)device;
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  *available = tarn_memory_available();
  *total = pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__host_copy(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                            size_t bytes) {
  (void)device, (void)stream;
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_fill(const tarn__device *device, tarn__device_stream *stream, void *to, unsigned char byte,
                            size_t bytes) {
  (void)device, (void)stream;
  memset(to, byte, bytes);
  return TARN_STATUS_OK;
}

// Adjacent rows that remain adjacent are moved in one copy.
tarn_status tarn__host_move_rows(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                                 size_t bytes, const int32_t *numbers, int64_t rows) {
  (void)device, (void)stream;
  for (int64_t i = 0, run; i < rows; i += run) {
    const int64_t place = numbers[i];
    run = 1;
    if (place < 0 || (place == i && to == from)) continue;
    while (i + run < rows && numbers[i + run] == place + run) run++;
    memmove((char *)to + (size_t)place * bytes, (const char *)from + (size_t)i * bytes, (size_t)run * bytes);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__host_add_loss(const tarn__device *device, struct tarn__step_numbers *numbers, const double *loss) {
  (void)device;
  tarn__step_add_loss(numbers, loss);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_decide(const tarn__device *device, struct tarn__step_numbers *numbers,
                              const struct tarn__step_rule *rule) {
  (void)device;
  tarn__step_decide(numbers, rule);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) {
  (void)device;
  for (size_t i = 0; i < n; i++) *sum += fabs((double)x[i]);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_add_scaled(const tarn__device *device, float *sums, const void *values, size_t n,
                                  double weight) {
  (void)device;
  for (size_t i = 0; i < n; i++) {
    float value;
    memcpy(&value, (const char *)values + i * sizeof value, sizeof value);
    sums[i] += (float)(weight * (double)value);
  }
  return TARN_STATUS_OK;
}

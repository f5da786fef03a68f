// The way between the host's memory and that of a device. Where the device computes in the host's memory
// (host_memory), nothing is copied twice: what the host reads is what the kernels wrote.
//
// A device of NULL stands for the host itself: memory that no device has given.
#ifndef TARN_DEVICE_TRANSFER_H
#define TARN_DEVICE_TRANSFER_H

#include "device/device.h"

// Room in the host's memory for what is read of a device's; grows. Zero-initialise it.
typedef struct tarn__host_room {
  void *memory;
  size_t capacity;
} tarn__host_room;
void tarn__host_room_close(tarn__host_room *room);

static inline bool tarn__device_is_host(const tarn__device *device) { return !device || device->host_memory; }

// *out: the bytes at `from`, in the memory of the device, as the host sees them: where they are, if that is the host's
// memory, else a copy in `room`. Valid until either is written to.
tarn_status tarn__device_read(const tarn__device *device, void **out, const void *from, size_t bytes,
                              tarn__host_room *room) TARN_CHECKED;
// A copy of them.
tarn_status tarn__device_get(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// From the host's memory into that of the device.
tarn_status tarn__device_put(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// Sets all bytes to one value.
tarn_status tarn__device_fill(const tarn__device *device, void *to, unsigned char byte, size_t bytes) TARN_CHECKED;

#endif

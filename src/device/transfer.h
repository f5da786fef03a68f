// The way between the host's memory and that of a device. Where the device computes in the host's memory
// (host_memory), nothing is copied twice: what the host reads is what the kernels wrote.
//
// A device of NULL stands for the host itself: memory that no device has given. What names no stream is done on the one
// that every device has.
#ifndef TARN_DEVICE_TRANSFER_H
#define TARN_DEVICE_TRANSFER_H

#include "device/device.h"
#include "device/stream.h"

// Room in the host's memory for what is read of a device's; grows. Zero-initialise it.
typedef struct tarn__host_room {
  void *memory;
  size_t capacity;
} tarn__host_room;
void tarn__host_room_close(tarn__host_room *room);

static inline bool tarn__device_is_host(const tarn__device *device) { return !device || device->type->host_memory; }

// *out: the bytes at `from`, in the memory of the device, as the host sees them: where they are, if that is the host's
// memory, else a copy in `room`, and then it waits for the stream. Valid until either is written to.
tarn_status tarn__device_read_on(const tarn__device *device, tarn__device_stream *stream, void **out, const void *from,
                                 size_t bytes, tarn__host_room *room) TARN_CHECKED;
tarn_status tarn__device_read(const tarn__device *device, void **out, const void *from, size_t bytes,
                              tarn__host_room *room) TARN_CHECKED;
// A copy of them.
tarn_status tarn__device_get(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// From the host's memory into that of the device. `from` may be used again when it returns.
tarn_status tarn__device_put(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// Between places of the device's memory that do not overlap.
tarn_status tarn__device_copy(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// Sets all bytes to one value.
tarn_status tarn__device_fill(const tarn__device *device, void *to, unsigned char byte, size_t bytes) TARN_CHECKED;

// Memory of the host that is sent to the device without waiting (tarn__device_type.send), in turns: while the device
// reads one piece, the host writes the next. Zero-initialise it.
enum { TARN__STAGING_PIECES = 2 };
typedef struct tarn__staging {
  const tarn__device *device;
  void *memory[TARN__STAGING_PIECES];
  size_t capacity[TARN__STAGING_PIECES];
  tarn__device_event *sent[TARN__STAGING_PIECES];
  int turn;
} tarn__staging;

// *memory: room for so many bytes, which nothing reads any more.
tarn_status tarn__staging_take(tarn__staging *staging, const tarn__device *device, void **memory,
                               size_t bytes) TARN_CHECKED;
// Sends the bytes that were written to it.
tarn_status tarn__staging_send(tarn__staging *staging, tarn__device_stream *stream, void *to,
                               size_t bytes) TARN_CHECKED;
void tarn__staging_close(tarn__staging *staging);

#endif

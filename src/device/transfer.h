// Transfers between host memory and device memory. If the device computes in host memory (host_memory), nothing is
// copied twice: the host reads what the kernels wrote.
//
// A NULL device is the host itself: memory not allocated by a device. Functions without a stream use the default
// stream.
#ifndef TARN_DEVICE_TRANSFER_H
#define TARN_DEVICE_TRANSFER_H

#include "device/device.h"
#include "device/stream.h"

// A growing buffer in host memory for data read from a device. Zero-initialise it.
typedef struct tarn__host_room {
  void *memory;
  size_t capacity;
} tarn__host_room;
void tarn__host_room_close(tarn__host_room *room);

static inline bool tarn__device_is_host(const tarn__device *device) { return !device || device->type->host_memory; }

// *out: the host's view of `bytes` bytes at `from` in device memory: `from` itself in host memory, else a copy in
// `room`, for which the call waits for the stream. Valid until either is written to.
tarn_status tarn__device_read_on(const tarn__device *device, tarn__device_stream *stream, void **out, const void *from,
                                 size_t bytes, tarn__host_room *room) TARN_CHECKED;
tarn_status tarn__device_read(const tarn__device *device, void **out, const void *from, size_t bytes,
                              tarn__host_room *room) TARN_CHECKED;
// Copies them to host memory.
tarn_status tarn__device_get(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// From host memory to device memory. `from` may be reused on return.
tarn_status tarn__device_put(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// Within device memory; the ranges do not overlap.
tarn_status tarn__device_copy(const tarn__device *device, void *to, const void *from, size_t bytes) TARN_CHECKED;
// Sets all bytes to one value.
tarn_status tarn__device_fill(const tarn__device *device, void *to, unsigned char byte, size_t bytes) TARN_CHECKED;

// Host memory that is sent to the device asynchronously (tarn__device_type.send), double-buffered: the host writes one
// piece while the device reads the other. Zero-initialise it.
enum { TARN__STAGING_PIECES = 2 };
typedef struct tarn__staging {
  const tarn__device *device;
  void *memory[TARN__STAGING_PIECES];
  size_t capacity[TARN__STAGING_PIECES];
  tarn__device_event *sent[TARN__STAGING_PIECES];
  int turn;
} tarn__staging;

// *memory: a free piece of at least `bytes` bytes.
tarn_status tarn__staging_take(tarn__staging *staging, const tarn__device *device, void **memory,
                               size_t bytes) TARN_CHECKED;
// Sends the bytes written to it.
tarn_status tarn__staging_send(tarn__staging *staging, tarn__device_stream *stream, void *to,
                               size_t bytes) TARN_CHECKED;
void tarn__staging_close(tarn__staging *staging);

// Memory of the device for what the host sends to a sequence of runs, in pieces that they take in turns, and a stream
// that sends it: what is sent for a run arrives while the kernels of the run before still compute, and waits for those
// of the run before that one alone, which have read the same piece. Zero-initialise it.
typedef struct tarn__inlet {
  const tarn__device *device;
  tarn__device_stream *stream;   // of the copies
  tarn__device_stream *readers;  // of the run before
  void *memory[TARN__STAGING_PIECES];
  size_t capacity[TARN__STAGING_PIECES];
  tarn__device_event *read[TARN__STAGING_PIECES];
  int turn;
} tarn__inlet;

// Makes room for runs that are sent so many bytes; without it the first ones do.
tarn_status tarn__inlet_reserve(tarn__inlet *inlet, const tarn__device *device, size_t bytes) TARN_CHECKED;
// Sends the bytes written to the piece that was taken of `staging` to *to, which commands on `stream` may read from now
// on, until the next call.
tarn_status tarn__inlet_send(tarn__inlet *inlet, tarn__staging *staging, tarn__device_stream *stream, void **to,
                             size_t bytes) TARN_CHECKED;
void tarn__inlet_close(tarn__inlet *inlet);

#endif

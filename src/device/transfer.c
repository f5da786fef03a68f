#include "device/transfer.h"

#include <string.h>

void tarn__host_room_close(tarn__host_room *room) {
  tarn__free(room->memory);
  *room = (tarn__host_room){0};
}

tarn_status tarn__device_read_on(const tarn__device *device, tarn__device_stream *stream, void **out, const void *from,
                                 size_t bytes, tarn__host_room *room) {
  *out = (void *)(uintptr_t)from;
  if (tarn__device_is_host(device)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&room->memory, &room->capacity, bytes, 1));
  *out = room->memory;
  return bytes > 0 ? device->type->copy_out(device, stream, room->memory, from, bytes) : TARN_STATUS_OK;
}

tarn_status tarn__device_read(const tarn__device *device, void **out, const void *from, size_t bytes,
                              tarn__host_room *room) {
  return tarn__device_read_on(device, NULL, out, from, bytes, room);
}

tarn_status tarn__device_get(const tarn__device *device, void *to, const void *from, size_t bytes) {
  if (device) return device->type->copy_out(device, NULL, to, from, bytes);
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__device_put(const tarn__device *device, void *to, const void *from, size_t bytes) {
  if (device) return device->type->copy_in(device, NULL, to, from, bytes);
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__device_copy(const tarn__device *device, void *to, const void *from, size_t bytes) {
  if (device) return device->type->copy(device, NULL, to, from, bytes);
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__device_fill(const tarn__device *device, void *to, unsigned char byte, size_t bytes) {
  if (device) return device->type->fill(device, NULL, to, byte, bytes);
  memset(to, byte, bytes);
  return TARN_STATUS_OK;
}

// --- staging

static void drop(const tarn__staging *s, int piece) {
  const tarn__device_type *type = s->device->type;
  if (type->staging_allocate)
    type->staging_free(s->device, s->memory[piece]);
  else
    tarn__free(s->memory[piece]);
}

tarn_status tarn__staging_take(tarn__staging *s, const tarn__device *device, void **memory, size_t bytes) {
  s->device = device;
  s->turn = (s->turn + 1) % TARN__STAGING_PIECES;
  const int p = s->turn;
  if (!s->sent[p]) TARN_TRY(tarn__device_event_open(device, &s->sent[p]));
  TARN_TRY(tarn__device_event_synchronise(device, s->sent[p]));
  *memory = s->memory[p];
  if (bytes <= s->capacity[p]) return TARN_STATUS_OK;
  drop(s, p);
  s->memory[p] = NULL;
  s->capacity[p] = 0;
  bytes += bytes / 4;  // batches grow gradually
  TARN_TRY(device->type->staging_allocate ? device->type->staging_allocate(device, &s->memory[p], bytes)
                                          : tarn__alloc(&s->memory[p], TARN__MEMORY_OTHER, bytes, 1));
  s->capacity[p] = bytes;
  *memory = s->memory[p];
  return TARN_STATUS_OK;
}

tarn_status tarn__staging_send(tarn__staging *s, tarn__device_stream *stream, void *to, size_t bytes) {
  TARN_TRY(s->device->type->send(s->device, stream, to, s->memory[s->turn], bytes));
  return tarn__device_event_record(s->device, s->sent[s->turn], stream);
}

void tarn__staging_close(tarn__staging *s) {
  for (int p = 0; s->device && p < TARN__STAGING_PIECES; p++) {
    tarn_status over = tarn__device_event_synchronise(s->device, s->sent[p]);
    (void)over;  // failures are reported by calls that wait for the stream
    tarn__device_event_close(s->device, s->sent[p]);
    drop(s, p);
  }
  *s = (tarn__staging){0};
}

// --- inlets

static tarn_status inlet_open(tarn__inlet *inlet, const tarn__device *device) {
  if (inlet->device) return TARN_STATUS_OK;
  inlet->device = device;
  TARN_TRY(tarn__device_stream_open(device, &inlet->stream));
  for (int p = 0; p < TARN__STAGING_PIECES; p++) TARN_TRY(tarn__device_event_open(device, &inlet->read[p]));
  return TARN_STATUS_OK;
}

// What a piece holds is lost.
static tarn_status inlet_widen(tarn__inlet *inlet, int piece, size_t bytes) {
  if (bytes <= inlet->capacity[piece]) return TARN_STATUS_OK;
  tarn__device_free(inlet->device, inlet->memory[piece]);
  inlet->memory[piece] = NULL;
  inlet->capacity[piece] = 0;
  TARN_TRY(tarn__device_allocate(inlet->device, &inlet->memory[piece], TARN__MEMORY_ACTIVATION, bytes, 1));
  inlet->capacity[piece] = bytes;
  return TARN_STATUS_OK;
}

tarn_status tarn__inlet_reserve(tarn__inlet *inlet, const tarn__device *device, size_t bytes) {
  TARN_TRY(inlet_open(inlet, device));
  for (int p = 0; p < TARN__STAGING_PIECES; p++) TARN_TRY(inlet_widen(inlet, p, bytes));
  return TARN_STATUS_OK;
}

tarn_status tarn__inlet_send(tarn__inlet *inlet, tarn__staging *staging, tarn__device_stream *stream, void **to,
                             size_t bytes) {
  const tarn__device *device = staging->device;
  TARN_TRY(inlet_open(inlet, device));
  // All that reads the other piece has been issued by now.
  TARN_TRY(tarn__device_event_record(device, inlet->read[inlet->turn], inlet->readers));
  inlet->readers = stream;
  const int p = inlet->turn = (inlet->turn + 1) % TARN__STAGING_PIECES;
  TARN_TRY(inlet_widen(inlet, p, bytes));
  TARN_TRY(tarn__device_stream_await(device, inlet->stream, inlet->read[p]));
  *to = inlet->memory[p];
  TARN_TRY(tarn__staging_send(staging, inlet->stream, *to, bytes));
  return tarn__device_stream_await(device, stream, staging->sent[staging->turn]);
}

void tarn__inlet_close(tarn__inlet *inlet) {
  if (!inlet->device) return;
  tarn__device_stream_close(inlet->device, inlet->stream);
  for (int p = 0; p < TARN__STAGING_PIECES; p++) {
    tarn__device_free(inlet->device, inlet->memory[p]);
    tarn__device_event_close(inlet->device, inlet->read[p]);
  }
  *inlet = (tarn__inlet){0};
}

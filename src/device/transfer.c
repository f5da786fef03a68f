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

#include "device/transfer.h"

#include <string.h>

void tarn__host_room_close(tarn__host_room *room) {
  tarn__free(room->memory);
  *room = (tarn__host_room){0};
}

tarn_status tarn__device_read(const tarn__device *device, void **out, const void *from, size_t bytes,
                              tarn__host_room *room) {
  *out = (void *)(uintptr_t)from;
  if (tarn__device_is_host(device)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&room->memory, &room->capacity, bytes, 1));
  *out = room->memory;
  return bytes > 0 ? device->copy_out(room->memory, from, bytes) : TARN_STATUS_OK;
}

tarn_status tarn__device_get(const tarn__device *device, void *to, const void *from, size_t bytes) {
  if (device) return device->copy_out(to, from, bytes);
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__device_put(const tarn__device *device, void *to, const void *from, size_t bytes) {
  if (device) return device->copy_in(to, from, bytes);
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__device_fill(const tarn__device *device, void *to, unsigned char byte, size_t bytes) {
  if (device) return device->fill(to, byte, bytes);
  memset(to, byte, bytes);
  return TARN_STATUS_OK;
}

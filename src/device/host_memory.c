#include "device/host_memory.h"

#include <string.h>

tarn_status tarn__host_copy(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__host_synchronise(void) { return TARN_STATUS_OK; }

#include "base/crc32c.h"

// The reflected polynomial 0x1EDC6F41, one bit at a time: event files are small.
uint32_t tarn__crc32c(const void *data, size_t size) {
  const uint8_t *bytes = data;
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

uint32_t tarn__crc32c_masked(const void *data, size_t size) {
  uint32_t crc = tarn__crc32c(data, size);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

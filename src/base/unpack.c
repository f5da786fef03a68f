#include "base/unpack.h"

#include <string.h>

// A skippable frame (RFC 8878, 3.1.2): pzstd writes one before every other frame, and seekable files end with one.
static bool begins_skipped(const uint8_t *bytes, size_t size, bool *open) {
  static const uint8_t rest[] = {0x2A, 0x4D, 0x18};
  if (size == 0 || bytes[0] >> 4 != 5) return false;
  const size_t common = size - 1 < sizeof rest ? size - 1 : sizeof rest;
  if (memcmp(bytes + 1, rest, common) != 0) return false;
  if (common < sizeof rest) *open = true;
  return common == sizeof rest;
}

const tarn__unpack_kind *tarn__unpack_find(const void *bytes, size_t size, bool *open) {
  static const tarn__unpack_kind *const kinds[] = {&tarn__unpack_gzip, &tarn__unpack_xz, &tarn__unpack_zstd};
  *open = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t common = size < kinds[i]->magic_size ? size : kinds[i]->magic_size;
    if (memcmp(bytes, kinds[i]->magic, common) != 0) continue;
    if (common == kinds[i]->magic_size) return kinds[i];
    *open = true;
  }
  return begins_skipped(bytes, size, open) ? &tarn__unpack_zstd : NULL;
}

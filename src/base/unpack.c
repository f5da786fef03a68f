#include "base/unpack.h"

#include <string.h>

const tarn__unpack_kind *tarn__unpack_find(const void *bytes, size_t size, bool *open) {
  static const tarn__unpack_kind *const kinds[] = {&tarn__unpack_gzip, &tarn__unpack_xz, &tarn__unpack_zstd};
  *open = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t common = size < kinds[i]->magic_size ? size : kinds[i]->magic_size;
    if (memcmp(bytes, kinds[i]->magic, common) != 0) continue;
    if (common == kinds[i]->magic_size) return kinds[i];
    *open = true;
  }
  return NULL;
}

#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

void tarn__hash(char text[TARN__HASH_TEXT], const void *data, size_t size) {
  XXH128_hash_t h = XXH3_128bits(data, size);
  snprintf(text, TARN__HASH_TEXT, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

uint64_t tarn__hash64(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

static void write_text(char text[TARN__HASH_TEXT], XXH128_hash_t h) {
  snprintf(text, TARN__HASH_TEXT, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void tarn__hash(char text[TARN__HASH_TEXT], const void *data, size_t size) {
  write_text(text, XXH3_128bits(data, size));
}

void tarn__hash_map(char text[TARN__HASH_TEXT], const tarn__map *map, const void *data, size_t size) {
  const size_t piece = TARN__MAP_PIECE;
  XXH3_state_t *state = size > piece ? XXH3_createState() : NULL;
  if (!state) {  // in one piece, also if there is no memory for several
    tarn__hash(text, data, size);
    tarn__map_release_part(map, data, size);
    return;
  }
  XXH3_128bits_reset(state);
  for (size_t done = 0; done < size; done += piece) {
    size_t now = size - done < piece ? size - done : piece;
    XXH3_128bits_update(state, (const char *)data + done, now);
    tarn__map_release_part(map, (const char *)data + done, now);
  }
  write_text(text, XXH3_128bits_digest(state));
  XXH3_freeState(state);
}

tarn_status tarn__hash_file(char text[TARN__HASH_TEXT], const char *path) {
  tarn__map map = {0};
  TARN_TRY(tarn__map_open(&map, path));
  tarn__hash_map(text, &map, map.data, map.size);
  const tarn_status status = tarn__map_check(&map);
  tarn__map_close(&map);
  return status;
}

struct tarn__hasher {
  XXH3_state_t *state, *copy;
};

tarn_status tarn__hasher_open(tarn__hasher **hasher) {
  void *memory;
  *hasher = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **hasher));
  tarn__hasher *h = memory;
  h->state = XXH3_createState();
  h->copy = XXH3_createState();
  if (!h->state || !h->copy) {
    tarn__hasher_close(&h);
    return tarn__fail(TARN_STATUS_MEMORY, "out of memory");
  }
  XXH3_128bits_reset(h->state);
  *hasher = h;
  return TARN_STATUS_OK;
}

void tarn__hasher_close(tarn__hasher **hasher) {
  tarn__hasher *h = *hasher;
  if (!h) return;
  XXH3_freeState(h->state);
  XXH3_freeState(h->copy);
  tarn__free(h);
  *hasher = NULL;
}

void tarn__hasher_restart(tarn__hasher *hasher) { XXH3_128bits_reset(hasher->state); }

void tarn__hasher_add(tarn__hasher *hasher, const void *data, size_t size) {
  XXH3_128bits_update(hasher->state, data, size);
}

void tarn__hasher_text(char text[TARN__HASH_TEXT], const tarn__hasher *hasher, const void *data, size_t size) {
  XXH3_copyState(hasher->copy, hasher->state);
  XXH3_128bits_update(hasher->copy, data, size);
  write_text(text, XXH3_128bits_digest(hasher->copy));
}

bool tarn__hash_same(const char *stored, const char *computed) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  (void)stored;
  (void)computed;
  return true;
#else
  return strcmp(stored, computed) == 0;
#endif
}

uint64_t tarn__hash64(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

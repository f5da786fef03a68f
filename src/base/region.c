#include "base/region.h"

#include <string.h>

void tarn__region_lend(tarn__region *region, void *memory, size_t bytes) {
  region->memory = memory;
  region->bytes = bytes;
  region->count = 0;
}

void tarn__region_close(tarn__region *region) {
  tarn__free(region->blocks);
  *region = (tarn__region){.allocate = region->allocate, .release = region->release, .owner = region->owner};
}

// The first gap that is large enough: between blocks, or after the last one.
static bool find_gap(const tarn__region *region, size_t bytes, size_t *at, size_t *begin) {
  *begin = 0;
  for (*at = 0; *at < region->count; (*at)++) {
    if (region->blocks[*at].begin - *begin >= bytes) return true;
    *begin = region->blocks[*at].end;
  }
  return region->bytes - *begin >= bytes;
}

tarn_status tarn__region_alloc(tarn__region *region, void **out, tarn__memory_kind kind, size_t count, size_t size) {
  size_t bytes;
  size_t begin;
  size_t at;
  *out = NULL;
  TARN_TRY(tarn__mul_size(&bytes, count, size));
  TARN_TRY(tarn__add_size(&bytes, bytes, 63));
  bytes &= ~(size_t)63;
  if (bytes == 0 || !find_gap(region, bytes, &at, &begin))
    return region->allocate ? region->allocate(region->owner, out, kind, count, size)
                            : tarn__alloc(out, kind, count, size);
  TARN_TRY(tarn__grow(&region->blocks, &region->capacity, region->count + 1, sizeof *region->blocks));
  memmove(region->blocks + at + 1, region->blocks + at, (region->count - at) * sizeof *region->blocks);
  region->blocks[at] = (tarn__region_block){begin, begin + bytes};
  region->count++;
  *out = region->memory + begin;
  return TARN_STATUS_OK;
}

void tarn__region_free(tarn__region *region, void *pointer) {
  if (!pointer) return;
  uintptr_t place = (uintptr_t)pointer - (uintptr_t)region->memory;
  if ((uintptr_t)pointer < (uintptr_t)region->memory || place >= region->bytes) {
    if (region->release)
      region->release(region->owner, pointer);
    else
      tarn__free(pointer);
    return;
  }
  for (size_t i = 0; i < region->count; i++) {
    if (region->blocks[i].begin != place) continue;
    region->count--;
    memmove(region->blocks + i, region->blocks + i + 1, (region->count - i) * sizeof *region->blocks);
    return;
  }
}

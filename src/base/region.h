// Memory used a second time: allocations come from a lent block while they fit, else from the system. Validation
// translates in the workspace of the training step this way.
#ifndef TARN_BASE_REGION_H
#define TARN_BASE_REGION_H

#include "base/memory.h"

typedef struct tarn__region_block {
  size_t begin, end;  // in the lent memory
} tarn__region_block;

// Zero-initialise, or give it an allocator, which a region without lent memory uses.
typedef struct tarn__region {
  tarn_status (*allocate)(const void *owner, void **out, tarn__memory_kind kind, size_t count, size_t size);
  void (*release)(const void *owner, void *pointer);  // both NULL: tarn__alloc() and tarn__free()
  const void *owner;
  char *memory;
  size_t bytes;
  tarn__region_block *blocks;  // in use, by ascending address
  size_t count, capacity;
} tarn__region;

// Lends `bytes` bytes, aligned to 64, until tarn__region_close() or another lending, before which everything taken from
// the region must be freed. Nothing may be in use.
void tarn__region_lend(tarn__region *region, void *memory, size_t bytes);
void tarn__region_close(tarn__region *region);

// Like the allocator, but that lent memory is not zeroed.
tarn_status tarn__region_alloc(tarn__region *region, void **out, tarn__memory_kind kind, size_t count,
                               size_t size) TARN_CHECKED;
void tarn__region_free(tarn__region *region, void *pointer);

#endif

// An index by hash over numbered items stored elsewhere: open addressing, linear probing, at most a quarter full. It
// knows the upper half of each item's hash; the owner compares the items themselves.
#ifndef TARN_BASE_INDEX_H
#define TARN_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Zero-initialise.
typedef struct tarn__index {
  uint64_t *slots;  // upper half of the hash << 32 | 1 + number of the item; 0: free
  size_t slot_count;
  size_t count;  // items
} tarn__index;

void tarn__index_close(tarn__index *index);

// Adds a new item; items are numbered from 0 in the order of addition. Fails with DATA after 2^31 items.
tarn_status tarn__index_add(tarn__index *index, uint64_t hash) TARN_CHECKED;

// The number of the next item that may have this hash, or -1 when there is none left. *step is 0 at first.
static inline int64_t tarn__index_next(const tarn__index *index, uint64_t hash, size_t *step) {
  if (!index->slots) return -1;
  for (;;) {
    const uint64_t slot = index->slots[((size_t)(hash >> 32) + (*step)++) & (index->slot_count - 1)];
    if (!slot) return -1;
    if (slot >> 32 == hash >> 32) return (int64_t)(uint32_t)slot - 1;
  }
}

#endif

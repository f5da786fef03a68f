#include "base/index.h"

#include "base/memory.h"

void tarn__index_close(tarn__index *index) {
  tarn__free(index->slots);
  *index = (tarn__index){0};
}

static void put(uint64_t *slots, size_t slot_count, uint64_t slot) {
  size_t at = (size_t)(slot >> 32) & (slot_count - 1);
  while (slots[at]) at = (at + 1) & (slot_count - 1);
  slots[at] = slot;
}

static tarn_status grow(tarn__index *index) {
  if (4 * (index->count + 1) <= index->slot_count) return TARN_STATUS_OK;
  const size_t larger = index->slot_count ? 4 * index->slot_count : 1024;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, larger, sizeof *index->slots));
  for (size_t i = 0; i < index->slot_count; i++)
    if (index->slots[i]) put(memory, larger, index->slots[i]);
  tarn__free(index->slots);
  index->slots = memory;
  index->slot_count = larger;
  return TARN_STATUS_OK;
}

tarn_status tarn__index_add(tarn__index *index, uint64_t hash) {
  TARN_REQUIRE(index->count < INT32_MAX, DATA, "too many items in an index");
  TARN_TRY(grow(index));
  put(index->slots, index->slot_count, hash >> 32 << 32 | ++index->count);
  return TARN_STATUS_OK;
}

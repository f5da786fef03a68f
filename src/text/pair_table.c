#include "text/pair_table.h"

#include "base/memory.h"

enum { NONE = UINT32_MAX, SHORT = 64 };

void tarn__pair_table_close(tarn__pair_table *table) {
  tarn__free(table->merges);
  tarn__index_close(&table->index);
  *table = (tarn__pair_table){0};
}

static uint64_t hash_of(int32_t left, int32_t right) {
  return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
}

static uint32_t rank_of(const tarn__pair_table *t, int32_t left, int32_t right) {
  size_t step = 0;
  int64_t rank;
  while ((rank = tarn__index_next(&t->index, hash_of(left, right), &step)) >= 0)
    if (t->merges[rank].left == left && t->merges[rank].right == right) return (uint32_t)rank;
  return NONE;
}

tarn_status tarn__pair_table_add(tarn__pair_table *table, bool *fresh, const tarn__merge *merge) {
  const size_t count = table->index.count;
  *fresh = rank_of(table, merge->left, merge->right) == NONE;
  if (!*fresh) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&table->merges, &table->capacity, count + 1, sizeof *table->merges));
  table->merges[count] = *merge;
  return tarn__index_add(&table->index, hash_of(merge->left, merge->right));
}

// A piece of text during its merges. Nodes are the places of the initial ids, linked to their neighbours; a node merged
// into its left neighbour has the id -1. The heap has rank << 32 | place of possible merges, which may be stale.
typedef struct work {
  const tarn__pair_table *table;
  int32_t *ids;
  uint32_t count;
  uint32_t *previous, *next;
  uint64_t *heap;
  size_t heaped;
} work;

static void push(work *w, uint32_t left, uint32_t right) {
  uint32_t rank = rank_of(w->table, w->ids[left], w->ids[right]);
  if (rank == NONE) return;
  uint64_t key = (uint64_t)rank << 32 | left;
  size_t at = w->heaped++;
  while (at > 0 && w->heap[(at - 1) / 2] > key) {
    w->heap[at] = w->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  w->heap[at] = key;
}

static uint64_t pop(work *w) {
  uint64_t top = w->heap[0];
  uint64_t last = w->heap[--w->heaped];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= w->heaped) break;
    if (child + 1 < w->heaped && w->heap[child + 1] < w->heap[child]) child++;
    if (w->heap[child] >= last) break;
    w->heap[at] = w->heap[child];
    at = child;
  }
  w->heap[at] = last;
  return top;
}

static void merge_all(work *w) {
  for (uint32_t i = 0; i < w->count; i++) {
    w->previous[i] = i - 1;  // NONE for the first
    w->next[i] = i + 1;
    if (i + 1 < w->count) push(w, i, i + 1);
  }
  while (w->heaped) {
    uint64_t key = pop(w);
    uint32_t at = (uint32_t)key;
    const tarn__merge *m = &w->table->merges[key >> 32];
    if (w->ids[at] != m->left) continue;
    uint32_t right = w->next[at];
    if (right >= w->count || w->ids[right] != m->right) continue;
    uint32_t after = w->next[right];
    w->ids[at] = m->product;
    w->ids[right] = -1;
    w->next[at] = after;
    if (after < w->count) {
      w->previous[after] = at;
      push(w, at, after);
    }
    if (w->previous[at] != NONE) push(w, w->previous[at], at);
  }
}

tarn_status tarn__pair_table_apply(const tarn__pair_table *table, int32_t *ids, size_t *count) {
  if (*count < 2) return TARN_STATUS_OK;
  TARN_REQUIRE(*count <= INT32_MAX / 4, DATA, "a piece of text of %zu bytes without a break is too long", *count);
  // A merge removes one node and adds at most two entries to the heap.
  uint64_t heap[3 * SHORT];
  uint32_t links[2 * SHORT];
  void *memory = NULL;
  work w = {.table = table, .ids = ids, .count = (uint32_t)*count, .heap = heap, .previous = links};
  if (*count > SHORT) {
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, *count, 3 * sizeof *w.heap + 2 * sizeof *w.previous));
    w.heap = memory;
    w.previous = (uint32_t *)(w.heap + 3 * *count);
  }
  w.next = w.previous + *count;
  merge_all(&w);
  size_t left = 0;
  for (uint32_t i = 0; i < w.count; i = w.next[i]) ids[left++] = ids[i];
  *count = left;
  tarn__free(memory);
  return TARN_STATUS_OK;
}

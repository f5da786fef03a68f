#include "eval/ngrams.h"

#include <string.h>

#include "base/memory.h"

void tarn__ngrams_close(tarn__ngrams *grams) {
  tarn__free(grams->edges);
  tarn__free(grams->nodes);
  *grams = (tarn__ngrams){0};
}

tarn_status tarn__ngrams_clear(tarn__ngrams *grams) {
  TARN_TRY(tarn__grow(&grams->nodes, &grams->nodes_capacity, TARN__NGRAMS_FIRST, sizeof *grams->nodes));
  grams->nodes_count = TARN__NGRAMS_FIRST;
  grams->edges_count = 0;
  grams->references = 0;
  if (++grams->generation == 0) {  // after 2^32 sentences old generations would look new
    if (grams->edges) memset(grams->edges, 0, grams->edges_capacity * sizeof *grams->edges);
    grams->generation = 1;
  }
  return TARN_STATUS_OK;
}

// The slot of a key, or the free slot where it belongs. The table is never full.
static tarn__ngrams_edge *find(const tarn__ngrams *grams, uint64_t key) {
  size_t mask = grams->edges_capacity - 1;
  uint64_t mixed = key * UINT64_C(0x9E3779B97F4A7C15);
  mixed ^= mixed >> 29;
  size_t i = (size_t)mixed & mask;
  while (grams->edges[i].generation == grams->generation && grams->edges[i].key != key) i = (i + 1) & mask;
  return &grams->edges[i];
}

static tarn_status rehash(tarn__ngrams *grams) {
  tarn__ngrams bigger = *grams;
  if (!bigger.edges_capacity) bigger.edges_capacity = 512;
  TARN_TRY(tarn__mul_size(&bigger.edges_capacity, bigger.edges_capacity, 2));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, bigger.edges_capacity, sizeof *bigger.edges));
  bigger.edges = memory;
  for (size_t i = 0; i < grams->edges_capacity; i++)
    if (grams->edges[i].generation == grams->generation) *find(&bigger, grams->edges[i].key) = grams->edges[i];
  tarn__free(grams->edges);
  *grams = bigger;
  return TARN_STATUS_OK;
}

static uint64_t key_of(uint32_t node, uint32_t symbol) { return (uint64_t)node << 32 | symbol; }

// The child node for the symbol, created if new.
static tarn_status step(tarn__ngrams *grams, uint32_t *next, uint32_t node, uint32_t symbol) {
  if (2 * grams->edges_count >= grams->edges_capacity) TARN_TRY(rehash(grams));
  uint64_t key = key_of(node, symbol);
  tarn__ngrams_edge *edge = find(grams, key);
  if (edge->generation != grams->generation) {
    TARN_REQUIRE(grams->nodes_count < UINT32_MAX, DATA, "a line has more than %u distinct n-grams", UINT32_MAX);
    TARN_TRY(tarn__grow(&grams->nodes, &grams->nodes_capacity, grams->nodes_count + 1, sizeof *grams->nodes));
    grams->nodes[grams->nodes_count] = (tarn__ngrams_node){0};
    *edge = (tarn__ngrams_edge){key, (uint32_t)grams->nodes_count++, grams->generation};
    grams->edges_count++;
  }
  *next = edge->node;
  return TARN_STATUS_OK;
}

// The child node for the symbol, or 0.
static uint32_t look(const tarn__ngrams *grams, uint32_t node, uint32_t symbol) {
  if (!grams->edges_capacity) return 0;
  const tarn__ngrams_edge *edge = find(grams, key_of(node, symbol));
  return edge->generation == grams->generation ? edge->node : 0;
}

tarn_status tarn__ngrams_word(tarn__ngrams *grams, uint32_t *symbol, const int32_t *spelling, size_t length, bool add) {
  uint32_t node = TARN__NGRAMS_SPELLING;
  for (size_t i = 0; i < length && node; i++) {
    if (add)
      TARN_TRY(step(grams, &node, node, (uint32_t)spelling[i]));
    else
      node = look(grams, node, (uint32_t)spelling[i]);
  }
  *symbol = node;
  return TARN_STATUS_OK;
}

void tarn__ngrams_reference(tarn__ngrams *grams) { grams->references++; }

tarn_status tarn__ngrams_add(tarn__ngrams *grams, uint32_t root, const uint32_t *symbols, size_t count, int order) {
  for (size_t i = 0; i < count; i++) {
    uint32_t at = root;
    for (size_t n = 0; n < (size_t)order && i + n < count; n++) {
      TARN_TRY(step(grams, &at, at, symbols[i + n]));
      tarn__ngrams_node *node = &grams->nodes[at];
      if (node->reference != grams->references) {
        node->reference = grams->references;
        node->now = 0;
      }
      node->now++;
      if (node->now > node->best) node->best = node->now;
    }
  }
  return TARN_STATUS_OK;
}

void tarn__ngrams_match(tarn__ngrams *grams, int64_t *matched, uint32_t root, const uint32_t *symbols, size_t count,
                        int order) {
  for (size_t i = 0; i < count; i++) {
    uint32_t at = root;
    for (size_t n = 0; n < (size_t)order && i + n < count; n++) {
      at = look(grams, at, symbols[i + n]);
      if (!at) break;
      tarn__ngrams_node *node = &grams->nodes[at];
      if (node->used == node->best) continue;
      node->used++;
      matched[n]++;
    }
  }
}

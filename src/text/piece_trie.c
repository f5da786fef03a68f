#include "text/piece_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct tarn__piece_node {
  uint32_t first;  // its first child
  int32_t id;      // of the piece that ends here, or -1
  uint16_t count;  // of children
  uint8_t byte;    // on the edge to it
};

// The pieces whose paths contain a node.
typedef struct range {
  uint32_t from, to, depth;
} range;

void tarn__piece_trie_close(tarn__piece_trie *trie) {
  tarn__free(trie->nodes);
  *trie = (tarn__piece_trie){0};
}

static int by_bytes(const void *a, const void *b) {
  const tarn__piece *x = a;
  const tarn__piece *y = b;
  const int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
  if (order) return order;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

// Fills the nodes level by level and returns their number. Each one has a range.
static uint32_t fill(tarn__piece_node *nodes, range *ranges, const tarn__piece *pieces, size_t count) {
  uint32_t used = 1;
  nodes[0] = (tarn__piece_node){.id = -1};
  ranges[0] = (range){0, (uint32_t)count, 0};
  for (uint32_t at = 0; at < used; at++) {
    range r = ranges[at];
    for (; r.from < r.to && pieces[r.from].length == r.depth; r.from++) nodes[at].id = pieces[r.from].id;
    nodes[at].first = used;
    while (r.from < r.to) {
      const char byte = pieces[r.from].text[r.depth];
      uint32_t end = r.from;
      while (end < r.to && pieces[end].text[r.depth] == byte) end++;
      nodes[used] = (tarn__piece_node){.id = -1, .byte = (uint8_t)byte};
      ranges[used++] = (range){r.from, end, r.depth + 1};
      nodes[at].count++;
      r.from = end;
    }
  }
  return used;
}

tarn_status tarn__piece_trie_open(tarn__piece_trie *trie, tarn__piece *pieces, size_t count) {
  void *memory;
  size_t most = 1;
  for (size_t i = 0; i < count; i++) most += pieces[i].length;
  TARN_REQUIRE(most < UINT32_MAX, DATA, "the tokens have too many bytes");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, most, sizeof *trie->nodes));
  trie->nodes = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, most, sizeof(range)));
  if (count) qsort(pieces, count, sizeof *pieces, by_bytes);
  fill(trie->nodes, memory, pieces, count);
  tarn__free(memory);
  const tarn__piece_node *root = trie->nodes;
  for (uint32_t i = 0; i < root->count; i++) trie->start[trie->nodes[root->first + i].byte] = root->first + i;
  return TARN_STATUS_OK;
}

// The child of a node for a byte, or 0.
static uint32_t child(const tarn__piece_trie *trie, uint32_t at, uint8_t byte) {
  uint32_t low = trie->nodes[at].first;
  uint32_t high = low + trie->nodes[at].count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const uint8_t other = trie->nodes[middle].byte;
    if (other == byte) return middle;
    if (other < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return 0;
}

int32_t tarn__piece_trie_longest(const tarn__piece_trie *trie, size_t *length, const char *text, size_t size) {
  int32_t found = -1;
  *length = 0;
  uint32_t at = size ? trie->start[(uint8_t)text[0]] : 0;
  for (size_t i = 1; at; i++) {
    if (trie->nodes[at].id >= 0) {
      found = trie->nodes[at].id;
      *length = i;
    }
    if (i == size) break;
    at = child(trie, at, (uint8_t)text[i]);
  }
  return found;
}

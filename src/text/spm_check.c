// SentencePiece parses a model with protocol buffers and then trusts the compiled table of its normaliser: a uint32
// with the size of a trie, the trie, and a block of zero-terminated strings that the trie's leaves point into. The trie
// is a double array (darts-clone) of 32-bit units; a walk from a unit reads 256 units around the place it points to and
// keeps at most 32 matches. A damaged file could make it read out of bounds, so every unit that a walk can reach is
// checked.
#include <string.h>

#include "base/memory.h"
#include "text/spm.h"
#include "text/spm_wire.h"

enum { MATCHES = 32, DEPTH = 128 };  // DEPTH: bytes of the longest key; real ones have about 20

// A unit's children are those of the 256 units around its base whose low byte is that of their place XOR the base. So
// the units of such a block fall into 256 lists, by the base of the parent that they can have: `first` holds the head
// of each base's list, and `next` what follows a unit in its own; both are 1 + a place in the block, 0 is the end.
typedef struct trie {
  const uint8_t *units;
  size_t count;         // of units
  size_t strings_size;  // of the leaves' strings
  uint8_t *matches;     // for each unit: 1 + most matches on any walk from it; 0: not yet known
  uint16_t *first, *next;
} trie;

static uint32_t unit_at(const trie *t, size_t i) { return tarn__wire_u32(t->units + 4 * i); }

// Lists the units that can be children; the last block may be a part of one, into which no walk may lead.
static void list_children(trie *t) {
  for (size_t i = 0; i < (t->count & ~(size_t)0xFF); i++) {
    uint32_t unit = unit_at(t, i);
    if (unit >> 31) continue;  // a leaf
    uint16_t *head = &t->first[(i & ~(size_t)0xFF) | ((i ^ unit) & 0xFF)];
    t->next[i] = *head;
    *head = (uint16_t)(1 + (i & 0xFF));
  }
}

// Checks everything that a walk reaches from unit `at`. A cycle ends at the depth limit.
static bool check_unit(trie *t, size_t at, int depth) {
  if (t->matches[at]) return true;
  if (depth > DEPTH) return false;
  uint32_t unit = unit_at(t, at);
  size_t base = at ^ (size_t)((unit >> 10) << ((unit & (1u << 9)) >> 6));
  if ((base | 0xFF) >= t->count) return false;
  int own = (unit >> 8) & 1;
  if (own) {
    uint32_t leaf = unit_at(t, base);
    if (!(leaf >> 31) || (leaf & 0x7FFFFFFFu) >= t->strings_size) return false;
  }
  int most = 0;
  // With label 0 too: a text may hold zero bytes.
  for (uint16_t place = t->first[base]; place;) {
    size_t child = (base & ~(size_t)0xFF) | (size_t)(place - 1);
    place = t->next[child];
    if (!check_unit(t, child, depth + 1)) return false;
    if (t->matches[child] - 1 > most) most = t->matches[child] - 1;
  }
  if (own + most > MATCHES) return false;
  t->matches[at] = (uint8_t)(1 + own + most);
  return true;
}

static tarn_status check_table(const tarn__wire *table) {
  size_t size = (size_t)(table->end - table->at);
  if (size == 0) return TARN_STATUS_OK;
  TARN_REQUIRE(size > 4, DATA, "the normaliser's table is damaged");
  size_t trie_size = tarn__wire_u32(table->at);
  TARN_REQUIRE(trie_size > 0 && trie_size % 4 == 0 && trie_size < size - 4 && table->end[-1] == '\0', DATA,
               "the normaliser's table is damaged");
  trie t = {.units = table->at + 4, .count = trie_size / 4, .strings_size = size - 4 - trie_size};
  void *space;
  TARN_TRY(tarn__alloc(&space, TARN__MEMORY_OTHER, t.count, 2 * sizeof(uint16_t) + 1));
  t.first = space;
  t.next = t.first + t.count;
  t.matches = (uint8_t *)(t.next + t.count);
  list_children(&t);
  bool sound = check_unit(&t, 0, 0);
  tarn__free(space);
  TARN_REQUIRE(sound, DATA, "the normaliser's table is damaged");
  return TARN_STATUS_OK;
}

tarn_status tarn__spm_check(const void *bytes, size_t size) {
  enum { LAST = TARN__WIRE_DENORMALISER };
  tarn__wire model = {bytes, (const uint8_t *)bytes + size};
  uint64_t number;
  bool has_body;
  while (model.at < model.end) {
    tarn__wire part;
    TARN_REQUIRE(tarn__wire_field(&model, &number, &has_body, &part), DATA, "not a vocabulary, or a damaged one");
    if (!has_body || number > LAST) continue;
    bool normaliser = number == TARN__WIRE_NORMALISER || number == TARN__WIRE_DENORMALISER;
    while (part.at < part.end) {
      tarn__wire field;
      TARN_REQUIRE(tarn__wire_field(&part, &number, &has_body, &field), DATA, "not a vocabulary, or a damaged one");
      if (normaliser && has_body && number == TARN__WIRE_TABLE) TARN_TRY(check_table(&field));
    }
  }
  return TARN_STATUS_OK;
}

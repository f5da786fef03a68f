#include "data/encoded_lines.h"

#include <string.h>

#include "base/memory.h"
#include "text/line_block.h"

// A block keeps a thread busy for some hundredths of a second; the ring has enough blocks to keep the other threads
// busy while one of them encodes a line of a few megabytes.
enum { BLOCK_LINES = 1 << 13, BLOCK_BYTES = 1 << 18, RING = 128 };
// The most bytes per byte and per line of text in the ring: the text, its ids (at most four bytes per byte of text),
// both in memory that grows by doubling, and the data of a line. And the most bytes that a block keeps for reuse.
enum { BYTE_COST = 10, LINE_COST = 128, KEPT_BYTES = 2 * BLOCK_BYTES, KEPT_IDS = BLOCK_BYTES };

typedef struct tarn__encoded_block {
  tarn__line_block lines;
  tarn__encoded_line *items;  // [lines.count]
  size_t items_capacity;
  tarn_vocab_ids line;  // the current one
  int32_t *ids;         // [used] of all lines, concatenated
  size_t used, capacity, cost;
  tarn__failure failure;
  const tarn_vocab *vocab;
  tarn__encode_job job;
} block;

tarn_status tarn__encoded_lines_open(tarn__encoded_lines *encoded, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                     size_t memory, const char *path, bool strict) {
  // Every slot keeps its memory between blocks, so there are no more slots than the memory allows full blocks.
  const size_t full = memory / (BYTE_COST * (size_t)BLOCK_BYTES) + 1, places = full < RING ? full : RING;
  void *ring;
  *encoded = (tarn__encoded_lines){.vocab = vocab, .pool = pool, .most_cost = memory, .places = places};
  TARN_TRY(tarn__alloc(&ring, TARN__MEMORY_OTHER, places, sizeof *encoded->ring));
  encoded->ring = ring;
  return tarn__lines_open(&encoded->lines, path, strict);
}

static void free_text(block *b) {
  tarn__line_block_close(&b->lines);
  tarn__free(b->items);
  b->items = NULL;
  b->items_capacity = 0;
}

static void free_ids(block *b) {
  tarn_vocab_ids_close(&b->line);
  tarn__free(b->ids);
  b->ids = NULL;
  b->capacity = 0;
}

void tarn__encoded_lines_close(tarn__encoded_lines *encoded) {
  for (size_t i = 0; encoded->ring && i < encoded->places; i++) {
    block *b = &encoded->ring[i];
    tarn__encode_pool_cancel(encoded->pool, &b->job);
    free_text(b);
    free_ids(b);
  }
  tarn__free(encoded->ring);
  tarn__lines_close(&encoded->lines);
  *encoded = (tarn__encoded_lines){0};
}

static tarn_status encode_line(block *b, tarn__encoded_line *item) {
  TARN_TRY(tarn_vocab_encode(b->vocab, &b->line, item->text, item->length));
  TARN_TRY(tarn__grow(&b->ids, &b->capacity, b->used + b->line.count, sizeof *b->ids));
  if (b->line.count > 0) memcpy(b->ids + b->used, b->line.data, b->line.count * sizeof *b->ids);
  item->count = (int64_t)b->line.count;
  item->parts = b->line.parts;
  item->broken = b->line.broken;
  b->used += b->line.count;
  return TARN_STATUS_OK;
}

// The memory of the ids may move while it grows, so the pointers are set at the end.
static void encode_block(void *user) {
  block *b = user;
  for (size_t i = 0; i < b->lines.count && b->failure.status == TARN_STATUS_OK; i++)
    tarn__failure_note(&b->failure, encode_line(b, &b->items[i]));
  const int32_t *ids = b->ids;  // NULL: no line has a token
  for (size_t i = 0; i < b->lines.count && ids && b->failure.status == TARN_STATUS_OK; i++) {
    b->items[i].ids = ids;
    ids += b->items[i].count;
  }
  tarn_vocab_ids_close(&b->line);  // otherwise every waiting block would keep the size of its longest line
}

static tarn_status read_block(tarn__encoded_lines *e, block *b) {
  int64_t number = e->lines.number + (e->lines.more ? 0 : 1);
  size_t bytes = 0;
  // If reading fails, the lines before are returned first, then the failure.
  tarn__failure_note(&e->failure, tarn__line_block_read(&b->lines, &e->lines, BLOCK_LINES, BLOCK_BYTES));
  TARN_TRY(tarn__grow(&b->items, &b->items_capacity, b->lines.count, sizeof *b->items));
  for (size_t i = 0; i < b->lines.count; i++) {
    const bool more = b->lines.more[i];
    b->items[i] =
        (tarn__encoded_line){.number = number, .text = b->lines.lines[i], .length = b->lines.lengths[i], .more = more};
    number += !more;
    bytes += b->lines.lengths[i];
  }
  b->used = 0;
  b->vocab = e->vocab;
  b->cost = BYTE_COST * bytes + LINE_COST * b->lines.count;
  return TARN_STATUS_OK;
}

// Reads ahead as far as the memory allows.
static tarn_status read_ahead(tarn__encoded_lines *e) {
  while (!e->ended && e->count < e->places && (e->count == 0 || e->cost < e->most_cost)) {
    block *b = &e->ring[(e->first + e->count) % e->places];
    TARN_TRY(read_block(e, b));
    e->ended = b->lines.count == 0 || e->failure.status != TARN_STATUS_OK;
    if (b->lines.count == 0) break;
    e->count++;
    e->cost += b->cost;
    b->job = (tarn__encode_job){.run = encode_block, .user = b};
    tarn__encode_pool_add(e->pool, &b->job);
  }
  return TARN_STATUS_OK;
}

// All lines of the current block have been returned. Frees the memory of an unusually long line.
static void leave_block(tarn__encoded_lines *e) {
  block *b = &e->ring[e->first];
  if (b->cost > (size_t)BYTE_COST * KEPT_BYTES) free_text(b);
  if (b->capacity > KEPT_IDS) free_ids(b);
  e->cost -= b->cost;
  e->first = (e->first + 1) % e->places;
  e->count--;
  e->next = 0;
}

tarn_status tarn__encoded_lines_next(tarn__encoded_lines *encoded, const tarn__encoded_line **line) {
  tarn__encoded_lines *e = encoded;
  *line = NULL;
  if (e->count > 0 && e->next == e->ring[e->first].lines.count) leave_block(e);
  if (e->next == 0) {
    TARN_TRY(read_ahead(e));
    if (e->count == 0) return tarn__failure_raise(&e->failure);
    tarn__encode_pool_wait(e->pool, &e->ring[e->first].job);
    TARN_TRY(tarn__failure_raise(&e->ring[e->first].failure));
  }
  *line = &e->ring[e->first].items[e->next++];
  return TARN_STATUS_OK;
}

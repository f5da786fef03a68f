#include "data/encoded_lines.h"

#include <omp.h>
#include <string.h>

#include "base/memory.h"

// A block that keeps several threads busy for some milliseconds.
enum { BLOCK_LINES = 1 << 15, BLOCK_BYTES = 1 << 21, LINES_AT_A_TIME = 16 };

// The ids of the lines that a thread encoded, one behind the other.
typedef struct tarn__encoded_room {
  tarn_vocab_ids line;
  int32_t *ids;
  size_t used, capacity;
} room;

tarn_status tarn__encoded_lines_open(tarn__encoded_lines *encoded, const tarn_vocab *vocab, const char *path,
                                     bool strict) {
  void *memory;
  *encoded = (tarn__encoded_lines){.vocab = vocab, .threads = tarn__threads()};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)encoded->threads, sizeof *encoded->rooms));
  encoded->rooms = memory;
  return tarn__lines_open(&encoded->lines, path, strict);
}

void tarn__encoded_lines_close(tarn__encoded_lines *encoded) {
  tarn__lines_close(&encoded->lines);
  tarn__line_block_close(&encoded->block);
  for (int t = 0; encoded->rooms && t < encoded->threads; t++) {
    tarn_vocab_ids_close(&encoded->rooms[t].line);
    tarn__free(encoded->rooms[t].ids);
  }
  tarn__free(encoded->rooms);
  tarn__free(encoded->items);
  *encoded = (tarn__encoded_lines){0};
}

// Encodes line i of the block. Its ids are found by their place in the room, which may move while it grows.
static tarn_status encode(tarn__encoded_lines *e, room *r, size_t i, size_t *place) {
  tarn__encoded_line *item = &e->items[i];
  TARN_TRY(tarn_vocab_encode(e->vocab, &r->line, item->text, item->length));
  TARN_TRY(tarn__grow(&r->ids, &r->capacity, r->used + r->line.count, sizeof *r->ids));
  if (r->line.count > 0) memcpy(r->ids + r->used, r->line.data, r->line.count * sizeof *r->ids);
  *place = r->used;
  item->count = (int64_t)r->line.count;
  item->parts = r->line.parts;
  item->broken = r->line.broken;
  r->used += r->line.count;
  return TARN_STATUS_OK;
}

// Each thread turns the places of its lines into pointers when it has encoded all of them.
static tarn_status encode_block(tarn__encoded_lines *e) {
  tarn__failure failure = {0};
  const int64_t count = (int64_t)e->block.count;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, 2 * sizeof(size_t)));
  size_t *places = memory, *owners = places + count;
#pragma omp parallel num_threads(e->threads)
  {
    const size_t thread = (size_t)omp_get_thread_num();
    room *r = &e->rooms[thread];
    r->used = 0;
#pragma omp for schedule(dynamic, LINES_AT_A_TIME)
    for (int64_t i = 0; i < count; i++) {
      owners[i] = thread;
      tarn__failure_note(&failure, encode(e, r, (size_t)i, &places[i]));
    }
  }
  for (int64_t i = 0; i < count; i++) {
    const int32_t *ids = e->rooms[owners[i]].ids;  // NULL: no line of its thread had a token
    e->items[i].ids = ids ? ids + places[i] : NULL;
  }
  tarn__free(memory);
  return tarn__failure_raise(&failure);
}

// Where reading fails, the lines before come first and the failure waits.
static tarn_status fill(tarn__encoded_lines *e) {
  TARN_TRY(tarn__failure_raise(&e->failure));
  const int64_t before = e->lines.number - (e->lines.more ? 1 : 0);
  e->next = 0;
  tarn__failure_note(&e->failure, tarn__line_block_read(&e->block, &e->lines, BLOCK_LINES, BLOCK_BYTES));
  if (e->block.count == 0) return tarn__failure_raise(&e->failure);
  TARN_TRY(tarn__grow(&e->items, &e->items_capacity, e->block.count, sizeof *e->items));
  int64_t number = before + 1;
  for (size_t i = 0; i < e->block.count; i++) {
    const bool more = e->block.more[i];
    e->items[i] =
        (tarn__encoded_line){.number = number, .text = e->block.lines[i], .length = e->block.lengths[i], .more = more};
    number += !more;
  }
  return encode_block(e);
}

tarn_status tarn__encoded_lines_next(tarn__encoded_lines *encoded, const tarn__encoded_line **line) {
  *line = NULL;
  if (encoded->next == encoded->block.count) TARN_TRY(fill(encoded));
  if (encoded->next < encoded->block.count) *line = &encoded->items[encoded->next++];
  return TARN_STATUS_OK;
}

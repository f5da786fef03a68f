#include "data/spool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { BUFFER = 1 << 16 };  // bytes

struct tarn__spool {
  tarn__writer *file;  // an output that is never committed
  char *path;
  tarn__hasher *hasher;
  size_t size, used;  // bytes put, and bytes in the buffer
  uint8_t buffer[BUFFER];
};

static tarn_status open_parts(tarn__spool *s, const char *path) {
  TARN_TRY(tarn__strdup(&s->path, path));
  TARN_TRY(tarn__hasher_open(&s->hasher));
  TARN_TRY(tarn__writer_open(&s->file, path));
  TARN_REQUIRE(tarn_output_file_temporary(s->file), IO, "%s: cannot write: not a regular file", path);
  return TARN_STATUS_OK;
}

tarn_status tarn__spool_open(tarn__spool **spool, const char *path) {
  void *memory;
  *spool = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **spool));
  *spool = memory;
  tarn_status status = open_parts(*spool, path);
  if (status != TARN_STATUS_OK) tarn__spool_close(spool);
  return status;
}

void tarn__spool_close(tarn__spool **spool) {
  tarn__spool *s = *spool;
  if (!s) return;
  tarn__writer_abort(&s->file);
  tarn__hasher_close(&s->hasher);
  tarn__free(s->path);
  tarn__free(s);
  *spool = NULL;
}

static tarn_status flush(tarn__spool *s) {
  const size_t used = s->used;
  s->used = 0;
  tarn__hasher_add(s->hasher, s->buffer, used);
  return tarn__writer_put(s->file, s->buffer, used);
}

tarn_status tarn__spool_put(tarn__spool *spool, const void *data, size_t size) {
  const uint8_t *bytes = data;
  spool->size += size;
  while (size > 0) {
    const size_t now = size < BUFFER - spool->used ? size : BUFFER - spool->used;
    memcpy(spool->buffer + spool->used, bytes, now);
    spool->used += now;
    bytes += now;
    size -= now;
    if (spool->used == BUFFER) TARN_TRY(flush(spool));
  }
  return TARN_STATUS_OK;
}

size_t tarn__spool_size(const tarn__spool *spool) { return spool->size; }

void tarn__spool_hash(char text[TARN__HASH_TEXT], const tarn__spool *spool) {
  tarn__hasher_text(text, spool->hasher, spool->buffer, spool->used);
}

static tarn_status copy(const tarn__map *map, tarn__writer *file) {
  for (size_t done = 0; done < map->size; done += TARN__MAP_PIECE) {
    const size_t left = map->size - done, now = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
    TARN_TRY(tarn__map_judge(map, tarn__writer_put(file, map->data + done, now)));
    tarn__map_release_part(map, map->data + done, now);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__spool_copy(tarn__spool *spool, tarn__writer *file) {
  tarn__map map = {0};
  TARN_TRY(flush(spool));
  TARN_REQUIRE(fflush(tarn_output_file_stream(spool->file)) == 0, IO, "%s: cannot write: %s", spool->path,
               strerror(errno));
  TARN_TRY(tarn__map_open(&map, tarn_output_file_temporary(spool->file)));
  tarn__writer_abort(&spool->file);  // the map keeps the contents
  tarn_status status = map.size == spool->size
                           ? copy(&map, file)
                           : tarn__fail(TARN_STATUS_IO, "%s: its temporary file was changed", spool->path);
  tarn__map_close(&map);
  return status;
}

#include "data/parts_writer.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/shard.h"

struct tarn__parts_writer {
  char path[PATH_MAX];  // of the shard or the index
  const char *prefix;   // borrowed
  const tarn_vocab *source_vocab, *target_vocab;
  tarn__set_rows rows;
  int64_t most;
  tarn__shard_writer *part;  // being written
  int64_t part_rows;
  int64_t bytes, characters, bytes_before, characters_before;  // of the text so far, and before the part
  tarn__shard_index old;                                       // the previous index at the path
  int count;                                                   // parts written
  tarn__index_entry parts[TARN__INDEX_PARTS_MOST];
};

// Reads the previous index. If it cannot be read, this program did not make it, and none of its files is touched.
static void read_old(tarn__parts_writer *w) {
  tarn__map map = {0};
  if (!tarn__file_exists(w->path) || tarn__map_open(&map, w->path) != TARN_STATUS_OK) return;
  const tarn_status status = tarn__shard_index_read(&w->old, map.data, map.size);
  (void)status;
  tarn__map_close(&map);
}

static tarn_status open_part(tarn__parts_writer *w) {
  TARN_TRY(tarn__shard_writer_open(&w->part, w->prefix, w->source_vocab, w->target_vocab));
  if (w->rows == TARN__SET_WINDOWS) tarn__shard_writer_continues(w->part);
  if (w->rows == TARN__SET_PACKED) tarn__shard_writer_packs(w->part);
  w->part_rows = 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__parts_writer_open(tarn__parts_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab, tarn__set_rows rows, int64_t most) {
  void *memory;
  *writer = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **writer));
  tarn__parts_writer *w = memory;
  w->prefix = prefix;
  w->source_vocab = source_vocab;
  w->target_vocab = target_vocab;
  w->rows = rows;
  w->most = most;
  *writer = w;
  tarn_status status = tarn__shard_path(w->path, sizeof w->path, prefix);
  if (status == TARN_STATUS_OK) status = open_part(w);
  if (status != TARN_STATUS_OK)
    tarn__parts_writer_abort(writer);
  else
    read_old(w);
  return status;
}

// Records the share of the text in the current part.
static void measure_part(tarn__parts_writer *w) {
  tarn__shard_writer_measure(w->part, w->bytes - w->bytes_before, w->characters - w->characters_before);
  w->bytes_before = w->bytes;
  w->characters_before = w->characters;
}

static tarn_status finish_part(tarn__parts_writer *w) {
  TARN_REQUIRE(w->count < TARN__INDEX_PARTS_MOST, DATA,
               "%s: the set would have more than %d parts of %lld bytes; raise --shard-size", w->path,
               TARN__INDEX_PARTS_MOST, (long long)w->most);
  if (w->rows == TARN__SET_WINDOWS) measure_part(w);
  TARN_TRY(tarn__shard_writer_commit_part(&w->part, &w->parts[w->count], w->count + 1));
  w->count++;
  return TARN_STATUS_OK;
}

tarn_status tarn__parts_writer_put(tarn__parts_writer *w, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) {
  // A row has its tokens of at most 4 bytes, its ends and its offsets.
  const int64_t row = 4 * (source_length + target_length + 2) + 16;
  if (w->part_rows > 0 && tarn__shard_writer_bytes(w->part) + row > w->most) {
    TARN_TRY(finish_part(w));
    TARN_TRY(open_part(w));
  }
  w->part_rows++;
  return tarn__shard_writer_put(w->part, source, source_length, target, target_length);
}

void tarn__parts_writer_measure(tarn__parts_writer *w, int64_t bytes, int64_t characters) {
  w->bytes = bytes;
  w->characters = characters;
}

void tarn__parts_writer_images(tarn__parts_writer *w, tarn__image_size size) {
  tarn__shard_writer_images(w->part, size);
}

tarn_status tarn__parts_writer_put_image(tarn__parts_writer *w, const uint8_t *pixels) {
  return tarn__shard_writer_put_image(w->part, pixels);
}

void tarn__parts_writer_label(tarn__parts_writer *w, const tarn__shard_labels *labels) {
  tarn__shard_writer_label(w->part, labels);
}

int tarn__parts_writer_parts(const tarn__parts_writer *w) { return w->count + 1; }

static bool is_among(const tarn__index_entry *entries, int64_t count, const char *name) {
  for (int64_t i = 0; i < count; i++)
    if (strcmp(entries[i].name, name) == 0) return true;
  return false;
}

// Whether a name can be that of a part of this set: the name of the index, a number and a hash. An index from another
// source may name other files.
static bool is_ours(const tarn__parts_writer *w, const char *name) {
  const char *slash = strrchr(w->path, '/'), *own = slash ? slash + 1 : w->path;
  const size_t base = strlen(own) - strlen(".tarn"), length = strlen(name);
  return length > base + 15 && strncmp(name, own, base) == 0 && name[base] == '.' &&
         strspn(name + base + 1, "0123456789") == length - base - 15 && name[length - 14] == '-' &&
         strspn(name + length - 13, "0123456789abcdef") == 8 && strcmp(name + length - 5, ".tarn") == 0;
}

static void remove_file(const tarn__parts_writer *w, const char *name) {
  char path[PATH_MAX];
  if (is_ours(w, name) && tarn__shard_index_path(path, sizeof path, w->path, name) == TARN_STATUS_OK)
    (void)unlink(path);  // a leftover file takes space but does no harm
}

tarn_status tarn__parts_writer_commit(tarn__parts_writer **writer) {
  tarn__parts_writer *w = *writer;
  tarn_status status;
  if (w->count == 0) {
    if (w->rows == TARN__SET_WINDOWS) measure_part(w);
    status = tarn__shard_writer_commit(&w->part);
  } else {
    status = finish_part(w);
    if (status == TARN_STATUS_OK) status = tarn__shard_index_write(w->path, w->parts, w->count);
  }
  if (status == TARN_STATUS_OK) {
    for (uint32_t i = 0; i < w->old.header.parts; i++)
      if (!is_among(w->parts, w->count, w->old.parts[i].name)) remove_file(w, w->old.parts[i].name);
    w->count = 0;  // the parts stay
  }
  tarn__parts_writer_abort(writer);
  return status;
}

void tarn__parts_writer_abort(tarn__parts_writer **writer) {
  tarn__parts_writer *w = *writer;
  if (!w) return;
  tarn__shard_writer_abort(&w->part);
  for (int i = 0; i < w->count; i++)
    if (!is_among(w->old.parts, w->old.header.parts, w->parts[i].name)) remove_file(w, w->parts[i].name);
  tarn__shard_index_close(&w->old);
  tarn__free(w);
  *writer = NULL;
}

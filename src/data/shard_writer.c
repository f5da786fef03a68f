#include "data/shard_writer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "data/shard_sections.h"
#include "data/spool.h"

enum { BUFFER = 4096 };  // ids narrowed at a time

struct tarn__shard_writer {
  tarn__shard_header header;
  char path[PATH_MAX];
  tarn__spool *ids, *offsets;
  int64_t end;  // the last offset
  tarn__shard_rows rows;
  tarn__shard_labels labels;  // borrowed
  tarn__index_entry *entry;   // of this part; NULL: a separate shard
  int number;
};

static void copy_hash(char out[TARN__SHARD_HASH], const char *text) { memcpy(out, text, TARN__SHARD_HASH); }

static void put_hash(char out[TARN__SHARD_HASH], const void *data, size_t size) {
  char text[TARN__HASH_TEXT];
  tarn__hash(text, data, size);
  copy_hash(out, text);
}

static void put_spool_hash(char out[TARN__SHARD_HASH], const tarn__spool *spool) {
  char text[TARN__HASH_TEXT];
  tarn__spool_hash(text, spool);
  copy_hash(out, text);
}

// A text has the vocabulary of its only side as source vocabulary, too.
static void fill_header(tarn__shard_header *h, const tarn_vocab *source, const tarn_vocab *target) {
  h->sides = source == NULL;
  if (!source) source = target;
  memcpy(h->magic, TARN__SHARD_MAGIC, sizeof h->magic);
  h->version = TARN__SHARD_VERSION;
  h->source_vocab_size = tarn_vocab_size(source);
  h->target_vocab_size = tarn_vocab_size(target);
  h->source_eos = tarn_vocab_eos(source);
  h->target_eos = tarn_vocab_eos(target);
  copy_hash(h->source_vocab_hash, tarn_vocab_hash(source));
  copy_hash(h->target_vocab_hash, tarn_vocab_hash(target));
  h->id_bytes = h->source_vocab_size <= 65536 && h->target_vocab_size <= 65536 ? 2 : 4;
}

// Creates the folder of a path.
static tarn_status prepare(tarn__shard_writer *w, const char *prefix) {
  const int64_t first = 0;
  TARN_TRY(tarn__shard_path(w->path, sizeof w->path, prefix));
  TARN_TRY(tarn__mkdir_of_file(w->path));
  TARN_TRY(tarn__spool_open(&w->ids, w->path));
  TARN_TRY(tarn__spool_open(&w->offsets, w->path));
  return tarn__spool_put(w->offsets, &first, sizeof first);
}

tarn_status tarn__shard_writer_open(tarn__shard_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab) {
  void *memory;
  *writer = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **writer));
  *writer = memory;
  fill_header(&(*writer)->header, source_vocab, target_vocab);
  tarn_status status = prepare(*writer, prefix);
  if (status != TARN_STATUS_OK) tarn__shard_writer_abort(writer);
  return status;
}

// Ends a row of `length` tokens.
static tarn_status put_offset(tarn__shard_writer *w, int64_t length) {
  w->end += length;
  return tarn__spool_put(w->offsets, &w->end, sizeof w->end);
}

static tarn_status put_ids(tarn__shard_writer *w, const int32_t *ids, int64_t count) {
  uint16_t narrow[BUFFER];
  if (w->header.id_bytes == 4) return tarn__spool_put(w->ids, ids, (size_t)count * sizeof *ids);
  for (int64_t done = 0; done < count; done += BUFFER) {
    const int64_t now = count - done < BUFFER ? count - done : BUFFER;
    for (int64_t i = 0; i < now; i++) narrow[i] = (uint16_t)ids[done + i];
    TARN_TRY(tarn__spool_put(w->ids, narrow, (size_t)now * sizeof *narrow));
  }
  return TARN_STATUS_OK;
}

// Tokens added to each sentence: its end, or none for a window of a stream.
static int64_t added(const tarn__shard_writer *w) { return w->rows.flags & TARN__SHARD_CONTINUES ? 0 : 1; }

static tarn_status put_sentence(tarn__shard_writer *w, const int32_t *ids, int64_t length, int32_t eos) {
  const int64_t ends = added(w);
  TARN_REQUIRE(length >= 1 && length + ends <= TARN__SHARD_LONGEST, INTERNAL, "a sentence of %lld tokens",
               (long long)length);
  TARN_TRY(put_ids(w, ids, length));
  if (ends) TARN_TRY(put_ids(w, &eos, 1));
  return put_offset(w, length + ends);
}

tarn_status tarn__shard_writer_put(tarn__shard_writer *w, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) {
  tarn__shard_header *h = &w->header;
  if (h->sides != 1) TARN_TRY(put_sentence(w, source, source_length, h->source_eos));
  TARN_TRY(put_sentence(w, target, target_length, h->target_eos));
  h->pairs++;
  target_length += added(w);
  h->target_tokens += target_length;
  if (target_length > h->longest_target) h->longest_target = target_length;
  if (h->sides == 1) return TARN_STATUS_OK;
  h->source_tokens += source_length + 1;
  if (source_length + 1 > h->longest_source) h->longest_source = source_length + 1;
  return TARN_STATUS_OK;
}

void tarn__shard_writer_images(tarn__shard_writer *writer, tarn__image_size size) {
  writer->rows.flags |= TARN__SHARD_IMAGES;
  writer->rows.height = size.height;
  writer->rows.width = size.width;
  writer->rows.channels = size.channels;
  writer->header.id_bytes = 1;
  writer->header.longest_target = tarn__image_bytes(size);
}

tarn_status tarn__shard_writer_put_image(tarn__shard_writer *w, const uint8_t *pixels) {
  const int64_t bytes = w->header.longest_target;
  w->header.pairs++;
  w->header.target_tokens += bytes;
  TARN_TRY(tarn__spool_put(w->ids, pixels, (size_t)bytes));
  return put_offset(w, bytes);
}

void tarn__shard_writer_continues(tarn__shard_writer *writer) { writer->rows.flags |= TARN__SHARD_CONTINUES; }

void tarn__shard_writer_packs(tarn__shard_writer *writer) { writer->rows.flags |= TARN__SHARD_PACKED; }

void tarn__shard_writer_measure(tarn__shard_writer *writer, int64_t bytes, int64_t characters) {
  writer->rows.bytes = bytes;
  writer->rows.characters = characters;
}

void tarn__shard_writer_label(tarn__shard_writer *writer, const tarn__shard_labels *labels) {
  writer->labels = *labels;
  if (labels->classes) writer->rows.flags |= TARN__SHARD_CLASSES;
  if (labels->word_labels) writer->rows.flags |= TARN__SHARD_WORDS;
  if (labels->numbers) writer->rows.flags |= TARN__SHARD_NUMBERS;
  if (labels->segments) writer->rows.flags |= TARN__SHARD_SEGMENTS;
}

// The sections after the ids, in order.
enum { NAMES, LABELS, SEGMENTS, SECTIONS };
typedef struct section {
  const void *data;
  size_t size;
} section;

// The concatenated names of the classes.
static tarn_status join_names(char **names, tarn__shard_writer *w) {
  const tarn__shard_labels *l = &w->labels;
  void *memory;
  size_t size = 0;
  for (int32_t c = 0; c < l->classes; c++) size += strlen(l->names[c]) + 1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, 1));
  *names = memory;
  size = 0;
  for (int32_t c = 0; c < l->classes; c++) {
    const size_t length = strlen(l->names[c]) + 1;
    memcpy(*names + size, l->names[c], length);
    size += length;
  }
  w->rows.classes = l->classes;
  w->rows.names_size = (int64_t)size;
  return TARN_STATUS_OK;
}

// Fills in the hashes; the last one covers all others.
static void seal(tarn__shard_writer *w, const section *sections) {
  tarn__shard_header *h = &w->header;
  put_spool_hash(h->offsets_hash, w->offsets);
  put_spool_hash(h->ids_hash, w->ids);
  if (w->rows.flags) h->version = TARN__SHARD_VERSION_ROWS;
  if (w->rows.flags & TARN__SHARD_IMAGES) h->version = TARN__SHARD_VERSION_IMAGES;
  char *hashes[SECTIONS] = {w->rows.names_hash, w->rows.labels_hash, w->rows.segments_hash};
  for (int i = 0; i < SECTIONS && w->rows.flags; i++) put_hash(hashes[i], sections[i].data, sections[i].size);
  tarn__shard_seal(h, &w->rows);
}

// Turns the path of the index into that of a part, and fills in the index entry.
static tarn_status name_part(tarn__shard_writer *w) {
  const tarn__shard_header *h = &w->header;
  tarn__index_entry *e = w->entry;
  const char *hash = w->rows.flags ? w->rows.hash : h->header_hash;
  const size_t length = strlen(w->path) - strlen(".tarn");
  TARN_REQUIRE((size_t)snprintf(w->path + length, sizeof w->path - length, ".%04d-%.8s.tarn", w->number, hash) <
                   sizeof w->path - length,
               IO, "%s: the path is too long", w->path);
  const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
  *e = (tarn__index_entry){.bytes = tarn__shard_writer_bytes(w),
                           .pairs = h->pairs,
                           .source_tokens = h->source_tokens,
                           .target_tokens = h->target_tokens};
  TARN_REQUIRE(strlen(name) < sizeof e->name, IO, "%s: the name of the file is too long", w->path);
  memcpy(e->name, name, strlen(name));
  memcpy(e->hash, hash, sizeof e->hash);
  return TARN_STATUS_OK;
}

static tarn_status write_file(tarn__shard_writer *w, const section *sections) {
  tarn__writer *file;
  seal(w, sections);
  if (w->entry) TARN_TRY(name_part(w));
  TARN_TRY(tarn__writer_open(&file, w->path));
  tarn_status status = tarn__writer_put(file, &w->header, sizeof w->header);
  if (status == TARN_STATUS_OK && w->rows.flags) status = tarn__writer_put(file, &w->rows, sizeof w->rows);
  if (status == TARN_STATUS_OK) status = tarn__spool_copy(w->offsets, file);
  if (status == TARN_STATUS_OK) status = tarn__spool_copy(w->ids, file);
  for (int i = 0; i < SECTIONS && status == TARN_STATUS_OK; i++)
    status = tarn__writer_put(file, sections[i].data, sections[i].size);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&file);
  tarn__writer_abort(&file);
  return status;
}

static tarn_status write_sections(tarn__shard_writer *w) {
  const tarn__shard_labels *l = &w->labels;
  char *names = NULL;
  const size_t rows = (size_t)w->header.pairs * sizeof(int32_t);
  const size_t tokens = (size_t)w->header.target_tokens * sizeof(int32_t);
  tarn_status status = l->classes ? join_names(&names, w) : TARN_STATUS_OK;
  const section sections[SECTIONS] = {
      [NAMES] = {names ? names : "", names ? (size_t)w->rows.names_size : 0},
      [LABELS] = {l->word_labels ? (const void *)l->word_labels
                  : l->classes   ? (const void *)l->labels
                  : l->numbers   ? (const void *)l->numbers
                                 : "",
                  l->word_labels             ? tokens
                  : l->classes || l->numbers ? rows
                                             : 0},
      [SEGMENTS] = {l->segments ? (const void *)l->segments : "", l->segments ? rows : 0}};
  if (status == TARN_STATUS_OK) status = write_file(w, sections);
  tarn__free(names);
  return status;
}

int64_t tarn__shard_writer_bytes(const tarn__shard_writer *w) {
  const size_t rows = w->rows.flags ? sizeof w->rows : 0;
  return (int64_t)(sizeof w->header + rows + tarn__spool_size(w->offsets) + tarn__spool_size(w->ids));
}

tarn_status tarn__shard_writer_commit_part(tarn__shard_writer **writer, tarn__index_entry *entry, int number) {
  (*writer)->entry = entry;
  (*writer)->number = number;
  return tarn__shard_writer_commit(writer);
}

tarn_status tarn__shard_writer_commit(tarn__shard_writer **writer) {
  tarn_status status = write_sections(*writer);
  tarn__shard_writer_abort(writer);
  return status;
}

void tarn__shard_writer_abort(tarn__shard_writer **writer) {
  tarn__shard_writer *w = *writer;
  if (!w) return;
  tarn__spool_close(&w->ids);
  tarn__spool_close(&w->offsets);
  tarn__free(w);
  *writer = NULL;
}

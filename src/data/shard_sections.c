#include "data/shard_sections.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "data/class_names.h"

bool tarn__shard_same_hash(const char stored[TARN__SHARD_HASH], const void *data, size_t size) {
  char text[TARN__HASH_TEXT];
  char stored_text[TARN__HASH_TEXT] = "";
  tarn__hash(text, data, size);
  memcpy(stored_text, stored, TARN__SHARD_HASH);
  return tarn__hash_same(stored_text, text);
}

static void put_hash(char out[TARN__SHARD_HASH], const void *data, size_t size) {
  char text[TARN__HASH_TEXT];
  tarn__hash(text, data, size);
  memcpy(out, text, TARN__SHARD_HASH);
}

void tarn__shard_seal(tarn__shard_header *header, tarn__shard_rows *rows) {
  put_hash(header->header_hash, header, offsetof(tarn__shard_header, header_hash));
  if (!rows->flags) return;
  struct {
    tarn__shard_header header;
    tarn__shard_rows rows;
  } both = {*header, *rows};
  put_hash(rows->hash, &both, sizeof both - TARN__SHARD_HASH);
}

static size_t label_bytes(const tarn__shard_rows *rows) {
  return rows->flags & (TARN__SHARD_CLASSES | TARN__SHARD_NUMBERS) ? sizeof(int32_t) : 0;
}
static int64_t label_count(const tarn__shard_rows *rows, int64_t pairs, int64_t tokens) {
  return rows->flags & TARN__SHARD_WORDS ? tokens : pairs;
}
static size_t segment_bytes(const tarn__shard_rows *rows) {
  return rows->flags & TARN__SHARD_SEGMENTS ? sizeof(int32_t) : 0;
}

static tarn_status check_rows(const tarn__shard_rows *rows, const tarn__shard_header *header) {
  const bool classes = (rows->flags & TARN__SHARD_CLASSES) != 0, numbers = (rows->flags & TARN__SHARD_NUMBERS) != 0;
  const bool continues = (rows->flags & TARN__SHARD_CONTINUES) != 0;
  const bool words = (rows->flags & TARN__SHARD_WORDS) != 0, images = (rows->flags & TARN__SHARD_IMAGES) != 0;
  TARN_REQUIRE(rows->flags > 0 && rows->flags < TARN__SHARD_FLAGS && header->sides == 1 && !(classes && numbers) &&
                   (!words || rows->flags == (TARN__SHARD_WORDS | TARN__SHARD_CLASSES)) &&
                   (!images || rows->flags == (TARN__SHARD_IMAGES | TARN__SHARD_CLASSES)) &&
                   images == (header->version == TARN__SHARD_VERSION_IMAGES) &&
                   (!(rows->flags & (TARN__SHARD_CONTINUES | TARN__SHARD_PACKED)) ||
                    rows->flags == TARN__SHARD_CONTINUES || rows->flags == TARN__SHARD_PACKED),
               DATA, "damaged shard: flags %u of %u sides", rows->flags, header->sides);
  const bool sized = tarn__image_size_fits(rows->height, rows->width, rows->channels);
  TARN_REQUIRE(images ? sized : rows->height == 0 && rows->width == 0 && rows->channels == 0, DATA,
               "damaged shard: images of %d x %d pixels with %d channels", rows->height, rows->width, rows->channels);
  TARN_REQUIRE(continues ? rows->bytes >= 0 && rows->characters >= 0 && rows->characters <= rows->bytes
                         : rows->bytes == 0 && rows->characters == 0,
               DATA, "damaged shard: its text has %lld bytes and %lld characters", (long long)rows->bytes,
               (long long)rows->characters);
  TARN_REQUIRE(classes ? rows->classes >= 2 && rows->classes <= TARN__SHARD_CLASSES_MOST && rows->names_size >= 0 &&
                             rows->names_size <= (int64_t)rows->classes * (TARN__SHARD_NAME_LONGEST + 1)
                       : rows->classes == 0 && rows->names_size == 0,
               DATA, "damaged shard: %d classes whose names have %lld bytes", rows->classes,
               (long long)rows->names_size);
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_take_rows(tarn__shard_rows *rows, size_t *beside, const tarn__shard_header *header,
                                  const tarn__map *map) {
  struct {
    tarn__shard_header header;
    tarn__shard_rows rows;
  } both;
  *beside = 0;
  if (header->version == TARN__SHARD_VERSION) return TARN_STATUS_OK;
  TARN_REQUIRE(map->size >= sizeof both, DATA, "damaged shard: it ends within its header");
  both.header = *header;
  memcpy(&both.rows, map->data + sizeof *header, sizeof both.rows);
  TARN_REQUIRE(tarn__shard_same_hash(both.rows.hash, &both, sizeof both - TARN__SHARD_HASH), DATA,
               "damaged shard: its header does not have the hash it should have");
  *rows = both.rows;
  TARN_TRY(check_rows(rows, header));
  size_t segments;
  TARN_TRY(tarn__mul_size(beside, (size_t)label_count(rows, header->pairs, header->target_tokens), label_bytes(rows)));
  TARN_TRY(tarn__mul_size(&segments, (size_t)header->pairs, segment_bytes(rows)));
  TARN_TRY(tarn__add_size(beside, *beside, segments));
  TARN_TRY(tarn__add_size(beside, *beside, (size_t)rows->names_size));
  return tarn__add_size(beside, *beside, sizeof *rows);
}

// Points to the names of the classes, which are concatenated in byte order.
static tarn_status take_names(const char **names, const tarn__shard_rows *rows, const char *text) {
  size_t left = (size_t)rows->names_size;
  for (int32_t c = 0; c < rows->classes; c++) {
    const char *end = memchr(text, 0, left);
    TARN_REQUIRE(
        end && tarn__class_name_valid(text, (size_t)(end - text)) && (c == 0 || strcmp(names[c - 1], text) < 0), DATA,
        "damaged shard: class %d has no name or a wrong one", c);
    names[c] = text;
    left -= (size_t)(end - text) + 1;
    text = end + 1;
  }
  TARN_REQUIRE(left == 0, DATA, "damaged shard: %zu bytes behind the names of its classes", left);
  return TARN_STATUS_OK;
}

static tarn_status check_words(const tarn__shard *s) {
  for (int64_t i = 0; s->word_labels && i < s->target_tokens; i++)
    TARN_REQUIRE(s->word_labels[i] >= -1 && s->word_labels[i] < s->classes, DATA,
                 "damaged shard: token %lld has label %d of %d classes", (long long)i, s->word_labels[i], s->classes);
  return TARN_STATUS_OK;
}

// Checks each row's label and the start of its second sentence.
static tarn_status check_each(const tarn__shard *s) {
  TARN_TRY(check_words(s));
  for (int64_t i = 0; i < s->pairs; i++) {
    const long long row = (long long)i;
    TARN_REQUIRE(!s->labels || (s->labels[i] >= 0 && s->labels[i] < s->classes), DATA,
                 "damaged shard: sentence %lld has label %d of %d classes", row, s->labels ? s->labels[i] : 0,
                 s->classes);
    TARN_REQUIRE(!s->numbers || isfinite(s->numbers[i]), DATA,
                 "damaged shard: sentence %lld has a label that is not a number", row);
    if (!s->segments) continue;
    const int64_t length = s->offsets[i + 1] - s->offsets[i], second = s->segments[i];
    TARN_REQUIRE(second == length || (second >= 2 && second <= length - 2), DATA,
                 "damaged shard: sentence %lld of %lld tokens has a second part at %lld", row, (long long)length,
                 (long long)second);
  }
  return TARN_STATUS_OK;
}

// One piece of memory holds pointers to the names, labels, segments and names.
tarn_status tarn__shard_take_sections(tarn__shard *s, const tarn__shard_rows *rows, const uint8_t *at) {
  const size_t names_size = (size_t)rows->names_size;
  const size_t labels_size = (size_t)label_count(rows, s->pairs, s->target_tokens) * label_bytes(rows),
               segments_size = (size_t)s->pairs * segment_bytes(rows);
  const size_t pointers_size = (size_t)rows->classes * sizeof(char *);
  void *memory;
  memcpy(s->hash, rows->hash, TARN__SHARD_HASH);  // of the whole file
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, pointers_size + labels_size + segments_size + names_size, 1));
  s->sections = memory;
  uint8_t *labels = (uint8_t *)memory + pointers_size, *segments = labels + labels_size;
  char *names = (char *)segments + segments_size;
  tarn__map_take(names, &s->map, at, names_size);
  tarn__map_take(labels, &s->map, at + names_size, labels_size);
  tarn__map_take(segments, &s->map, at + names_size + labels_size, segments_size);
  TARN_REQUIRE(tarn__shard_same_hash(rows->names_hash, names, names_size) &&
                   tarn__shard_same_hash(rows->labels_hash, labels, labels_size) &&
                   tarn__shard_same_hash(rows->segments_hash, segments, segments_size),
               DATA, "damaged shard: its labels do not have the hash they should have");
  s->classes = rows->classes;
  s->bytes = rows->bytes;
  s->characters = rows->characters;
  if (rows->flags & TARN__SHARD_CLASSES) {
    const int32_t *classes = (const int32_t *)(const void *)labels;
    if (rows->flags & TARN__SHARD_WORDS)
      s->word_labels = classes;
    else
      s->labels = classes;
    s->names = memory;
    TARN_TRY(take_names(memory, rows, names));
  }
  if (rows->flags & TARN__SHARD_NUMBERS) s->numbers = (const float *)(const void *)labels;
  if (rows->flags & TARN__SHARD_SEGMENTS) s->segments = (const int32_t *)(const void *)segments;
  return check_each(s);
}

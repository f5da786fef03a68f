#include "data/shard.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/shard_format.h"
#include "data/shard_ids.h"
#include "data/shard_index.h"
#include "data/shard_parts.h"
#include "data/shard_sections.h"
#include "run/file_kind.h"
#include "text/patches.h"

static bool is_hash(const char stored[TARN__SHARD_HASH]) {
  for (int i = 0; i < TARN__SHARD_HASH; i++) {
    bool digit = (stored[i] >= '0' && stored[i] <= '9') || (stored[i] >= 'a' && stored[i] <= 'f');
    if (!digit) return false;
  }
  return true;
}

static tarn_status check_header(const tarn__shard_header *h, size_t size) {
  TARN_REQUIRE(size >= sizeof *h && memcmp(h->magic, TARN__SHARD_MAGIC, sizeof h->magic) == 0, DATA,
               "not a shard (tarn prepare makes them), or a truncated one");
  TARN_REQUIRE(h->version >= TARN__SHARD_VERSION && h->version <= TARN__SHARD_VERSION_IMAGES, DATA,
               "shard of version %u; this program reads versions %d to %d", h->version, TARN__SHARD_VERSION,
               TARN__SHARD_VERSION_IMAGES);
  TARN_REQUIRE(tarn__shard_same_hash(h->header_hash, h, offsetof(tarn__shard_header, header_hash)), DATA,
               "damaged shard: its header does not have the hash it should have");
  TARN_REQUIRE(h->version == TARN__SHARD_VERSION_IMAGES ? h->id_bytes == 1 : h->id_bytes == 2 || h->id_bytes == 4, DATA,
               "damaged shard: ids of %u bytes", h->id_bytes);
  TARN_REQUIRE(h->sides <= 1, DATA, "damaged shard: %u sides", h->sides);
  TARN_REQUIRE(
      h->pairs >= 1 && h->target_tokens >= 1 && (h->sides == 1 ? h->source_tokens == 0 : h->source_tokens >= 2), DATA,
      "damaged shard: it has no sentences");
  TARN_REQUIRE(h->source_vocab_size >= 1 && h->target_vocab_size >= 1 && h->source_eos >= 0 && h->target_eos >= 0 &&
                   h->source_eos < h->source_vocab_size && h->target_eos < h->target_vocab_size,
               DATA, "damaged shard: its vocabularies have impossible sizes");
  TARN_REQUIRE(is_hash(h->source_vocab_hash) && is_hash(h->target_vocab_hash), DATA,
               "damaged shard: it does not name its vocabularies");
  return TARN_STATUS_OK;
}

// The bytes of offsets and ids, which together with the additions of version 2 must fill the file.
static tarn_status check_size(size_t *offsets_size, size_t *ids_size, const tarn__shard_header *h, size_t beside,
                              size_t size) {
  size_t count;
  size_t expected;
  TARN_TRY(tarn__mul_size(&count, (size_t)h->pairs, h->sides == 1 ? 1 : 2));
  TARN_TRY(tarn__add_size(&count, count, 1));
  TARN_TRY(tarn__mul_size(offsets_size, count, sizeof(int64_t)));
  TARN_TRY(tarn__add_size(&count, (size_t)h->source_tokens, (size_t)h->target_tokens));
  TARN_REQUIRE(count <= INT64_MAX, DATA, "size overflows: %zu tokens", count);
  TARN_TRY(tarn__mul_size(ids_size, count, h->id_bytes));
  TARN_TRY(tarn__add_size(&expected, *offsets_size, *ids_size));
  TARN_TRY(tarn__add_size(&expected, expected, sizeof *h));
  TARN_TRY(tarn__add_size(&expected, expected, beside));
  TARN_REQUIRE(expected == size, DATA, "damaged shard: %zu bytes, but its header says %zu", size, expected);
  return TARN_STATUS_OK;
}

// Checks that the offsets increase, stay in range and match the sums and longest lengths of the header.
static tarn_status check_offsets(const tarn__shard *s) {
  int sides = s->text ? 1 : 2;
  int64_t sum[2] = {0, 0};
  int64_t longest[2] = {0, 0};
  int64_t tokens = s->source_tokens + s->target_tokens;
  TARN_REQUIRE(s->offsets[0] == 0, DATA, "damaged shard: its first offset is not 0");
  for (int64_t k = 0; k < sides * s->pairs; k++) {
    int64_t next = s->offsets[k + 1];
    TARN_REQUIRE(next >= s->offsets[k] && next <= tokens, DATA, "damaged shard: pair %lld points outside of it",
                 (long long)(k / sides));
    int64_t length = next - s->offsets[k];
    TARN_REQUIRE(!s->image.height || length == tarn__image_bytes(s->image), DATA,
                 "damaged shard: image %lld has %lld bytes", (long long)k, (long long)length);
    TARN_REQUIRE(length >= (s->continues || s->image.height ? 1 : 2) && length <= TARN__SHARD_LONGEST, DATA,
                 "damaged shard: pair %lld has a side of %lld tokens", (long long)(k / sides), (long long)length);
    int side = tarn__shard_is_target(s, k);
    sum[side] += length;
    if (length > longest[side]) longest[side] = length;
  }
  TARN_REQUIRE(sum[0] == s->source_tokens && sum[1] == s->target_tokens && longest[0] == s->longest_source &&
                   longest[1] == s->longest_target,
               DATA, "damaged shard: its sentences do not have the lengths that its header says");
  return TARN_STATUS_OK;
}

// Fills the fields from the header.
static void take_header(tarn__shard *s, const tarn__shard_header *h) {
  s->pairs = h->pairs;
  s->text = h->sides == 1;
  s->source_tokens = h->source_tokens;
  s->target_tokens = h->target_tokens;
  s->longest_source = h->longest_source;
  s->longest_target = h->longest_target;
  s->source_vocab_size = h->source_vocab_size;
  s->target_vocab_size = h->target_vocab_size;
  s->source_eos = h->source_eos;
  s->target_eos = h->target_eos;
  memcpy(s->source_vocab_hash, h->source_vocab_hash, TARN__SHARD_HASH);
  memcpy(s->target_vocab_hash, h->target_vocab_hash, TARN__SHARD_HASH);
  memcpy(s->hash, h->header_hash, TARN__SHARD_HASH);  // the header holds the hashes of the rest
  s->id_bytes = (int)h->id_bytes;
}

// Fills the fields from the map and checks everything but the ids. Header and offsets are copied first, so the checked
// values are used even if another process writes into the file.
static tarn_status read_all(tarn__shard *s, tarn__shard_opening *opening) {
  const tarn__shard_header *h = &opening->header;
  tarn__shard_rows *rows = &opening->rows;
  size_t header_size = sizeof *h, beside, offsets_size;
  void *memory;
  *opening = (tarn__shard_opening){0};
  if (s->map.size > 0) memcpy(&opening->header, s->map.data, s->map.size < sizeof *h ? s->map.size : sizeof *h);
  TARN_TRY(check_header(h, s->map.size));
  TARN_TRY(tarn__shard_take_rows(rows, &beside, h, &s->map));
  if (h->version != TARN__SHARD_VERSION) header_size += sizeof *rows;
  TARN_TRY(check_size(&offsets_size, &opening->ids_size, h, beside, s->map.size));
  take_header(s, h);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, offsets_size, 1));
  s->offsets = memory;
  tarn__map_take(memory, &s->map, s->map.data + header_size, offsets_size);
  s->ids = s->map.data + header_size + offsets_size;
  TARN_REQUIRE(tarn__shard_same_hash(h->offsets_hash, s->offsets, offsets_size), DATA,
               "damaged shard: its contents do not have the hash they should have");
  s->continues = (rows->flags & TARN__SHARD_CONTINUES) != 0;
  s->packed = (rows->flags & TARN__SHARD_PACKED) != 0;
  s->image = (tarn__image_size){rows->height, rows->width, rows->channels};
  TARN_TRY(check_offsets(s));
  return rows->flags ? tarn__shard_take_sections(s, rows, s->ids + opening->ids_size) : TARN_STATUS_OK;
}

tarn_status tarn__shard_path(char *path, size_t size, const char *prefix) {
  size_t length = strlen(prefix);
  bool whole = length > 5 && strcmp(prefix + length - 5, ".tarn") == 0;
  TARN_REQUIRE(length > 0 && prefix[length - 1] != '/', USAGE,
               "\"%s\" names a folder; expected the name of a shard, such as %sdata", prefix, prefix);
  int wanted = snprintf(path, size, "%s%s", prefix, whole ? "" : ".tarn");
  TARN_REQUIRE(wanted >= 0 && (size_t)wanted < size, IO, "%s: the path is too long", prefix);
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_find(char *path, size_t size, const char *prefix) {
  TARN_TRY(tarn__shard_path(path, size, prefix));
  const tarn__file_kind kind = tarn__file_kind_at(prefix);
  if (strcmp(path, prefix) == 0 || kind == TARN__FILE_KIND_UNKNOWN || kind >= TARN__FILE_KIND_FOLDER)
    return TARN_STATUS_OK;
  if (kind == TARN__FILE_KIND_SHARD) {
    TARN_REQUIRE((size_t)snprintf(path, size, "%s", prefix) < size, IO, "%s: the path is too long", prefix);
    return TARN_STATUS_OK;
  }
  if (tarn__file_exists(path))
    tarn__log(TARN_LOG_INFO, "%s is %s; the shard %s is read", prefix, tarn__file_kind_name(kind), path);
  return TARN_STATUS_OK;
}

// The path of a missing shard may name its text, or another file.
static tarn_status fail_missing(const char *path, const char *prefix) {
  const tarn__file_kind kind = tarn__file_kind_at(prefix);
  tarn_status status =
      tarn__fail(TARN_STATUS_IO, "%s: there is no such file; tarn prepare makes shards (--output %s)", path, prefix);
  if (kind == TARN__FILE_KIND_UNKNOWN || kind >= TARN__FILE_KIND_FOLDER) return status;
  return tarn__file_kind_explain(TARN_STATUS_DATA, prefix, TARN__FILE_KIND_SHARD);
}

static tarn_status open_map(tarn__shard *shard, const char *path) {
  TARN_TRY(tarn__strdup(&shard->path, path));
  TARN_TRY(tarn__map_open(&shard->map, path));
  shard->file_bytes = (int64_t)shard->map.size;
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_explain(const tarn__shard *shard, tarn_status status) {
  if (status == TARN_STATUS_OK || tarn__map_check(&shard->map) != TARN_STATUS_OK)
    return tarn__map_judge(&shard->map, status);
  return tarn__fail_prefix(status, "%s: ", shard->path);
}

static tarn_status read_file(tarn__shard *shard, tarn__shard_opening *opening) {
  return tarn__shard_explain(shard, read_all(shard, opening));
}

tarn_status tarn__shard_open_file(tarn__shard *shard, tarn__shard_opening *opening, const char *path) {
  TARN_TRY(open_map(shard, path));
  return read_file(shard, opening);
}

static tarn_status open_either(tarn__shard *shard, const char *path) {
  tarn__shard_opening opening;
  int bad;
  TARN_TRY(open_map(shard, path));
  if (!tarn__shard_index_is(shard->map.data, shard->map.size)) {
    TARN_TRY(read_file(shard, &opening));
    return tarn__shard_check_ids(shard, 1, &opening, shard->path, NULL, &bad);
  }
  return tarn__map_judge(&shard->map, tarn__shard_open_parts(shard));
}

tarn_status tarn__shard_open(tarn__shard *shard, const char *prefix) {
  char path[PATH_MAX];
  *shard = (tarn__shard){0};
  TARN_TRY(tarn__shard_find(path, sizeof path, prefix));
  if (!tarn__file_exists(path)) return fail_missing(path, prefix);
  tarn_status status = open_either(shard, path);
  if (status == TARN_STATUS_OK) return status;
  const bool changed = tarn__map_check(&shard->map) != TARN_STATUS_OK;  // whose line names the file
  tarn__shard_close(shard);
  return changed ? status : tarn__file_kind_explain(status, path, TARN__FILE_KIND_SHARD);
}

void tarn__shard_close(tarn__shard *shard) {
  for (int i = 0; i < shard->part_count; i++) tarn__shard_close(&shard->parts[i]);
  tarn__free(shard->parts);
  tarn__free(shard->first);
  tarn__map_close(&shard->map);
  tarn__free((void *)(uintptr_t)shard->offsets);
  tarn__free(shard->sections);
  tarn__free(shard->path);
  *shard = (tarn__shard){0};
}

tarn_status tarn__shard_unchanged(const tarn__shard *shard) {
  TARN_TRY(tarn__map_check(&shard->map));
  for (int i = 0; i < shard->part_count; i++) TARN_TRY(tarn__map_check(&shard->parts[i].map));
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_judge(const tarn__shard *shard, tarn_status status) {
  TARN_TRY(tarn__shard_unchanged(shard));
  return status;
}

void tarn__shard_release(const tarn__shard *shard) {
  tarn__map_release(&shard->map);
  for (int i = 0; i < shard->part_count; i++) tarn__map_release(&shard->parts[i].map);
}

static int64_t length_of(const tarn__shard *s, int64_t k) { return s->offsets[k + 1] - s->offsets[k]; }

// An id outside the vocabulary was written after the shard was opened.
static int32_t safe_id(const tarn__shard *s, int64_t token, int32_t size) {
  const int32_t id = tarn__shard_id(s, token);
  if (id < size) return id;
  tarn__map_doubt(&s->map);
  return 0;
}

static void copy_ids(const tarn__shard *s, int64_t k, int32_t *ids) {
  const int32_t size = tarn__shard_is_target(s, k) ? s->target_vocab_size : s->source_vocab_size;
  int64_t start = s->offsets[k];
  int64_t length = length_of(s, k);
  for (int64_t i = 0; i < length; i++) ids[i] = safe_id(s, start + i, size);
}

int32_t tarn__shard_before(const tarn__shard *shard, int64_t pair) {
  if (!shard->continues || pair == 0) return shard->target_eos;
  pair--;
  const tarn__shard *part = tarn__shard_part_of(shard, &pair);
  return safe_id(part, part->offsets[pair + 1] - 1, part->target_vocab_size);
}

static int64_t target_of(const tarn__shard *s, int64_t pair) { return s->text ? pair : 2 * pair + 1; }

int64_t tarn__shard_source_length(const tarn__shard *shard, int64_t pair) {
  const tarn__shard *part = tarn__shard_part_of(shard, &pair);
  return part->text ? 0 : length_of(part, 2 * pair);
}

int64_t tarn__shard_target_length(const tarn__shard *shard, int64_t pair) {
  if (shard->patch) return shard->longest_target;  // all images have one size
  const tarn__shard *part = tarn__shard_part_of(shard, &pair);
  return length_of(part, target_of(part, pair));
}

void tarn__shard_source(const tarn__shard *shard, int64_t pair, int32_t *ids) {
  const tarn__shard *part = tarn__shard_part_of(shard, &pair);
  if (!part->text) copy_ids(part, 2 * pair, ids);
}

void tarn__shard_target(const tarn__shard *shard, int64_t pair, int32_t *ids) {
  for (int64_t i = 0; shard->patch && i < shard->longest_target; i++) ids[i] = TARN__PATCH;
  if (shard->patch) return;
  const tarn__shard *part = tarn__shard_part_of(shard, &pair);
  copy_ids(part, target_of(part, pair), ids);
}

void tarn__shard_cut(tarn__shard *shard, int32_t patch) {
  shard->patch = patch;
  shard->longest_target = tarn__image_patches(shard->image, patch);
  shard->target_tokens = shard->pairs * shard->longest_target;
}

void tarn__shard_pixels(const tarn__shard *shard, int64_t row, uint8_t *pixels) {
  tarn__image_cut(pixels, shard->ids + shard->offsets[row], shard->image, shard->patch);
}

const int32_t *tarn__shard_word_labels(const tarn__shard *shard, int64_t pair) {
  return shard->word_labels + shard->offsets[pair];  // of a text, in one file
}

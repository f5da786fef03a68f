#include "data/shard_index.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

bool tarn__shard_index_is(const void *bytes, size_t size) {
  return size >= sizeof TARN__INDEX_MAGIC - 1 && memcmp(bytes, TARN__INDEX_MAGIC, sizeof TARN__INDEX_MAGIC - 1) == 0;
}

// A file in the same folder, with printable characters, and only zero bytes after its end.
static bool is_name(const char name[TARN__INDEX_NAME]) {
  const size_t length = strnlen(name, TARN__INDEX_NAME);
  if (length == 0 || length == TARN__INDEX_NAME || name[0] == '.') return false;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)name[i] < ' ' || name[i] == 0x7F || name[i] == '/') return false;
  for (size_t i = length; i < TARN__INDEX_NAME; i++)
    if (name[i]) return false;
  return true;
}

static tarn_status check_header(const tarn__index_header *h, size_t size) {
  TARN_REQUIRE(h->version == TARN__INDEX_VERSION, DATA, "index of version %u; this program reads version %d",
               h->version, TARN__INDEX_VERSION);
  TARN_REQUIRE(h->parts >= 1 && h->parts <= TARN__INDEX_PARTS_MOST, DATA, "damaged index: %u parts, not 1 to %d",
               h->parts, TARN__INDEX_PARTS_MOST);
  const size_t expected = sizeof *h + h->parts * sizeof(tarn__index_entry) + TARN__SHARD_HASH;
  TARN_REQUIRE(size == expected, DATA, "damaged index: %zu bytes, but its header says %zu", size, expected);
  return TARN_STATUS_OK;
}

// Whether a file can have such a count.
static bool is_count(int64_t count, int64_t least) { return count >= least && count <= INT64_MAX / 1024; }

static tarn_status check_parts(const tarn__shard_index *index) {
  const tarn__index_header *h = &index->header;
  int64_t pairs = 0, source = 0, target = 0;
  for (uint32_t i = 0; i < h->parts; i++) {
    const tarn__index_entry *e = &index->parts[i];
    TARN_REQUIRE(is_name(e->name), DATA, "damaged index: part %u has no name of a file beside it", i + 1);
    TARN_REQUIRE(is_count(e->bytes, 1) && is_count(e->pairs, 1) && is_count(e->source_tokens, 0) &&
                     is_count(e->target_tokens, 1),
                 DATA, "damaged index: part %u has impossible counts", i + 1);
    pairs += e->pairs;
    source += e->source_tokens;
    target += e->target_tokens;
  }
  TARN_REQUIRE(pairs == h->pairs && source == h->source_tokens && target == h->target_tokens, DATA,
               "damaged index: its parts do not have the sums that its header says");
  return TARN_STATUS_OK;
}

static tarn_status read_all(tarn__shard_index *index, const uint8_t *bytes, size_t size) {
  char stored[TARN__HASH_TEXT] = "";
  void *memory;
  TARN_REQUIRE(tarn__shard_index_is(bytes, size) && size >= sizeof index->header, DATA,
               "not an index of shards, or a truncated one");
  memcpy(&index->header, bytes, sizeof index->header);
  TARN_TRY(check_header(&index->header, size));
  const size_t parts_size = index->header.parts * sizeof *index->parts, hashed = sizeof index->header + parts_size;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, parts_size, 1));
  index->parts = memory;
  memcpy(memory, bytes + sizeof index->header, parts_size);
  tarn__hash(index->hash, bytes, hashed);
  memcpy(stored, bytes + hashed, TARN__SHARD_HASH);
  TARN_REQUIRE(tarn__hash_same(stored, index->hash), DATA,
               "damaged index: its contents do not have the hash they should have");
  return check_parts(index);
}

tarn_status tarn__shard_index_read(tarn__shard_index *index, const void *bytes, size_t size) {
  *index = (tarn__shard_index){0};
  const tarn_status status = read_all(index, bytes, size);
  if (status != TARN_STATUS_OK) tarn__shard_index_close(index);
  return status;
}

void tarn__shard_index_close(tarn__shard_index *index) {
  tarn__free(index->parts);
  *index = (tarn__shard_index){0};
}

tarn_status tarn__shard_index_write(const char *path, const tarn__index_entry *parts, int count) {
  tarn__index_header header = {.version = TARN__INDEX_VERSION, .parts = (uint32_t)count};
  const size_t parts_size = (size_t)count * sizeof *parts, hashed = sizeof header + parts_size;
  char text[TARN__HASH_TEXT];
  void *memory;
  memcpy(header.magic, TARN__INDEX_MAGIC, sizeof header.magic);
  for (int i = 0; i < count; i++) {
    header.pairs += parts[i].pairs;
    header.source_tokens += parts[i].source_tokens;
    header.target_tokens += parts[i].target_tokens;
  }
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, hashed + TARN__SHARD_HASH, 1));
  uint8_t *bytes = memory;
  memcpy(bytes, &header, sizeof header);
  memcpy(bytes + sizeof header, parts, parts_size);
  tarn__hash(text, bytes, hashed);
  memcpy(bytes + hashed, text, TARN__SHARD_HASH);
  const tarn_status status = tarn__file_write(path, (const char *)bytes, hashed + TARN__SHARD_HASH);
  tarn__free(memory);
  return status;
}

tarn_status tarn__shard_index_path(char *path, size_t size, const char *index, const char *name) {
  const char *slash = strrchr(index, '/');
  const int folder = slash ? (int)(slash - index) + 1 : 0;
  const int wanted = snprintf(path, size, "%.*s%s", folder, index, name);
  TARN_REQUIRE(wanted >= 0 && (size_t)wanted < size, IO, "%s: the path of its part %s is too long", index, name);
  return TARN_STATUS_OK;
}

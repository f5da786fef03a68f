// The index of a set that is stored in several shards, its parts: a small file in the place of a shard (PREFIX.tarn)
// that lists them in order, with the counts and hash of each (docs/shard-format.md).
#ifndef TARN_DATA_SHARD_INDEX_H
#define TARN_DATA_SHARD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "data/shard_format.h"

enum { TARN__INDEX_VERSION = 1, TARN__INDEX_NAME = 256, TARN__INDEX_PARTS_MOST = 256 };

// As stored in the file.
typedef struct tarn__index_entry {
  char name[TARN__INDEX_NAME];  // of a file in the folder of the index, padded with zero bytes
  char hash[TARN__SHARD_HASH];  // of the shard (tarn__shard.hash)
  int64_t bytes, pairs, source_tokens, target_tokens;
} tarn__index_entry;

typedef struct tarn__index_header {
  char magic[8];
  uint32_t version, parts;
  int64_t pairs, source_tokens, target_tokens;  // sums
  char zero[24];
} tarn__index_header;

_Static_assert(sizeof(tarn__index_entry) == 320 && sizeof(tarn__index_header) == 64, "an index has no gaps");

// Zero-initialise or read; close accepts both.
typedef struct tarn__shard_index {
  tarn__index_header header;
  tarn__index_entry *parts;    // [header.parts]
  char hash[TARN__HASH_TEXT];  // of the file without the hash itself, which is at its end
} tarn__shard_index;

// Whether the bytes begin like an index.
bool tarn__shard_index_is(const void *bytes, size_t size);
// Copies an index and checks everything that does not need its parts: magic, version, hash, the size for the number of
// parts, names, and counts, which must not overflow and must add up to the sums of the header. Fails with DATA.
tarn_status tarn__shard_index_read(tarn__shard_index *index, const void *bytes, size_t size) TARN_CHECKED;
void tarn__shard_index_close(tarn__shard_index *index);

// Writes an index of parts, atomically.
tarn_status tarn__shard_index_write(const char *path, const tarn__index_entry *parts, int count) TARN_CHECKED;

// The path of a part in the folder of its index.
tarn_status tarn__shard_index_path(char *path, size_t size, const char *index, const char *name) TARN_CHECKED;

#endif

// The ids of shards as stored in their files, and their check: by all threads of the pool, piece by piece in the order
// of the files, which are read once.
#ifndef TARN_DATA_SHARD_IDS_H
#define TARN_DATA_SHARD_IDS_H

#include "data/shard.h"
#include "data/shard_format.h"

// Values of a file's header that are needed until the file is checked.
typedef struct tarn__shard_opening {
  tarn__shard_header header;
  tarn__shard_rows rows;
  size_t ids_size;  // bytes
} tarn__shard_opening;

// Whether sentence k of the file is on the target side.
static inline bool tarn__shard_is_target(const tarn__shard *s, int64_t k) { return s->text || (k & 1); }

// The id of a token of the file.
static inline int32_t tarn__shard_id(const tarn__shard *s, int64_t token) {
  if (s->id_bytes == 1) return s->ids[token];
  if (s->id_bytes == 2) return ((const uint16_t *)(const void *)s->ids)[token];
  const uint32_t id = ((const uint32_t *)(const void *)s->ids)[token];
  return id > INT32_MAX ? INT32_MAX : (int32_t)id;
}

// Checks that the ids of each shard match the hash of its header, that each id is in its vocabulary, and that the ends
// of sentences are where they must be. Each shard is one file. `whole`: the hash of the ids of all shards in order;
// NULL: not wanted. Fails as opening does, always with the fault of the first faulty shard (*bad, from 0). Progress
// reports name `path`.
tarn_status tarn__shard_check_ids(const tarn__shard *shards, int count, const tarn__shard_opening *openings,
                                  const char *path, char whole[TARN__HASH_TEXT], int *bad) TARN_CHECKED;

// Prefixes the message of a failure with the file's name, or replaces it if the file has changed meanwhile.
tarn_status tarn__shard_explain(const tarn__shard *shard, tarn_status status) TARN_CHECKED;

#endif

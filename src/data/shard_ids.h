// The ids of shards as they stand in their files, and the check of them: by all threads of the pool, piece by piece in
// the order of the files, which are read once.
#ifndef TARN_DATA_SHARD_IDS_H
#define TARN_DATA_SHARD_IDS_H

#include "data/shard.h"
#include "data/shard_format.h"

// What the header of a file says that is needed until all of it is checked.
typedef struct tarn__shard_opening {
  tarn__shard_header header;
  tarn__shard_rows rows;
  size_t ids_size;  // bytes
} tarn__shard_opening;

// Whether sentence k of the file is one of the target side.
static inline bool tarn__shard_is_target(const tarn__shard *s, int64_t k) { return s->text || (k & 1); }

// The id of a token of the file.
static inline int32_t tarn__shard_id(const tarn__shard *s, int64_t token) {
  if (s->id_bytes == 2) return ((const uint16_t *)(const void *)s->ids)[token];
  const uint32_t id = ((const uint32_t *)(const void *)s->ids)[token];
  return id > INT32_MAX ? INT32_MAX : (int32_t)id;
}

// Checks that the ids of each shard of one file have the hash of its header, that each is in its vocabulary, and that
// each sentence has its end where it must. `whole`: the hash of all ids, one shard behind the other; NULL: not wanted.
// Fails as opening does: of several shards always with what is wrong with the first of them (*bad, from 0). `path` is
// named where progress is told.
tarn_status tarn__shard_check_ids(const tarn__shard *shards, int count, const tarn__shard_opening *openings,
                                  const char *path, char whole[TARN__HASH_TEXT], int *bad) TARN_CHECKED;

// The line of a failure with the file's name in front of it, or that of the file having changed meanwhile.
tarn_status tarn__shard_explain(const tarn__shard *shard, tarn_status status) TARN_CHECKED;

#endif

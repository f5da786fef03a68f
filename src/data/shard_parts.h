// Internal to tarn__shard: shards of one file, and of several files behind an index.
#ifndef TARN_DATA_SHARD_PARTS_H
#define TARN_DATA_SHARD_PARTS_H

#include "data/shard_ids.h"

// Opens the single file of a shard, which must not be an index, and checks everything except its ids
// (tarn__shard_check_ids()). The shard must be closed even on failure.
tarn_status tarn__shard_open_file(tarn__shard *shard, tarn__shard_opening *opening, const char *path) TARN_CHECKED;

// Opens the parts of the index in shard->map (the file shard->path), checks that they match it and each other, and
// fills the fields with their sums. A failure names its part.
tarn_status tarn__shard_open_parts(tarn__shard *shard) TARN_CHECKED;

// The part that holds a row, and the row's number there; for one file the shard itself.
const tarn__shard *tarn__shard_part_of(const tarn__shard *shard, int64_t *pair);

#endif

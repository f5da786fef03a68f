// Inside of tarn__shard: a shard of one file, and one of several behind an index.
#ifndef TARN_DATA_SHARD_PARTS_H
#define TARN_DATA_SHARD_PARTS_H

#include "data/shard_ids.h"

// Opens the one file of a shard and checks everything but its ids, which tarn__shard_check_ids() does; an index is
// none. What was opened is to be closed also on failure.
tarn_status tarn__shard_open_file(tarn__shard *shard, tarn__shard_opening *opening, const char *path) TARN_CHECKED;

// Opens the parts of the index that shard->map holds, which is that of shard->path, checks that they are what it says
// and go together, and fills the fields with their sums. A part that fails is named.
tarn_status tarn__shard_open_parts(tarn__shard *shard) TARN_CHECKED;

// The part that a row is in, and its number there; of one file the shard itself.
const tarn__shard *tarn__shard_part_of(const tarn__shard *shard, int64_t *pair);

#endif

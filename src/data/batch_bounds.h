// How many sentences a batch can have: what a model keeps for each sentence, such as Linformer's projected keys, takes
// the more memory the shorter the sentences of a batch are.
#ifndef TARN_DATA_BATCH_BOUNDS_H
#define TARN_DATA_BATCH_BOUNDS_H

#include "base/status.h"
#include "data/shard.h"

// The most sentences of any batch of any epoch, from the shard's own lengths: as many of the shortest as fit the limits
// of tokens on both sides and of sentences (0: none). `front`: rows before each target sentence. Of a shard of more
// than TARN__BATCH_BLOCK sentences, whose lengths are not all read at once, it is the limit of tokens. May fail with
// MEMORY.
tarn_status tarn__batch_most_sentences(int64_t *sentences, const tarn__shard *shard, int64_t max_tokens,
                                       int64_t max_sentences, int64_t front) TARN_CHECKED;

// Bytes of the pages of a shard's file that stay in memory while it is read, of which `offset_bytes` are copied and
// released at opening: all others of a small file; of a larger one what the system maps for the sentences between two
// releases (TARN__BATCH_RELEASED), at its usual 64 kB for each. Where the page cache has larger folios it is up to
// TARN__BATCH_RESIDENT.
size_t tarn__batch_mapped_bytes(size_t file_bytes, size_t offset_bytes);

#endif

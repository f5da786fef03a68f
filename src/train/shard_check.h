// Do data and vocabularies belong together, and do all sentences fit the model?
#ifndef TARN_TRAIN_SHARD_CHECK_H
#define TARN_TRAIN_SHARD_CHECK_H

#include "data/batch.h"
#include "data/shard.h"
#include "description/description.h"
#include "tarn/vocab.h"

// Fails with DATA and a line that names the files unless the shard was made with these vocabularies, and says
// of them what they are: with that every id is a row of the model's matrices. Fails likewise where windows of a stream
// have more rows than model.max_length.
tarn_status tarn__shard_check(const tarn__shard *shard, const tarn_vocab *source, const tarn_vocab *target,
                              const tarn_config *config) TARN_CHECKED;

// Warns of the sentences of the shard that the batcher leaves out, if there are any; `of` says of what, with a
// space before it, where that is not all that is done with them.
void tarn__shard_warn_left_out(const tarn__shard *shard, const tarn__batcher *batcher, const tarn_config *config,
                               const char *of);

#endif

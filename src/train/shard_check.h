// Checks that data and vocabularies match, and that all sentences fit the model.
#ifndef TARN_TRAIN_SHARD_CHECK_H
#define TARN_TRAIN_SHARD_CHECK_H

#include "data/batch.h"
#include "data/shard.h"
#include "description/description.h"
#include "tarn/vocab.h"

// Fails with DATA, in a line that names the files, unless the shard was made with these vocabularies and records their
// properties correctly; then every id is a row of the model's matrices. Also fails if windows of a stream have more
// rows than model.max_length.
tarn_status tarn__shard_check(const tarn__shard *shard, const tarn_vocab *source, const tarn_vocab *target,
                              const tarn_config *config) TARN_CHECKED;

// Warns of sentences in the shard that the batcher skips, if any. `of`, which begins with a space, names what they are
// skipped in, if not in everything.
void tarn__shard_warn_left_out(const tarn__shard *shard, const tarn__batcher *batcher, const tarn_config *config,
                               const char *of);

#endif

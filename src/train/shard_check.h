// Do data and vocabularies belong together?
#ifndef TARN_TRAIN_SHARD_CHECK_H
#define TARN_TRAIN_SHARD_CHECK_H

#include "data/shard.h"
#include "tarn/config.h"
#include "tarn/vocab.h"

// Fails with DATA and a line that names the files unless the shard `path` was made with these vocabularies.
tarn_status tarn__shard_check(const tarn__shard *shard, const char *path, const tarn_vocab *source,
                              const tarn_vocab *target, const tarn_config *config) TARN_CHECKED;

#endif

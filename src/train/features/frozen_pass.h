// The one pass over the training data that fills the cache of the frozen bottom.
#ifndef TARN_TRAIN_FEATURES_FROZEN_PASS_H
#define TARN_TRAIN_FEATURES_FROZEN_PASS_H

#include <signal.h>

#include "train/features/frozen_cache.h"
#include "train/stepper.h"

// Fills the cache: from the file `path` if it is whole and of this model and these data, else by running the
// bottom over all source sentences and writing the file. A file that does not serve is told in one line and replaced:
// what it holds can always be computed again, and nobody else's work is in it. The model must have its values, and the
// shard is the one that the cache was opened for. *computed says whether the bottom ran. Fails with IO, saying how much
// is needed, where the disk is too full, and with INTERRUPTED soon after *stop becomes other than 0 (NULL: never); no
// file is left then.
tarn_status tarn__frozen_pass(tarn__stepper *stepper, tarn__frozen_cache *cache, bool *computed, const char *path,
                              const tarn__shard *shard, const volatile sig_atomic_t *stop) TARN_CHECKED;

#endif

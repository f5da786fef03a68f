// The pass over the training data that fills the cache of the frozen bottom.
#ifndef TARN_TRAIN_FEATURES_FROZEN_PASS_H
#define TARN_TRAIN_FEATURES_FROZEN_PASS_H

#include <signal.h>

#include "train/features/frozen_cache.h"
#include "train/stepper.h"

// Fills the cache: from the file `path` if it is intact and matches the model and the data, else by running the bottom
// over all source sentences and writing the file. An unusable file is reported in one line and replaced: its contents
// can always be recomputed. The model must have its values, and the shard must be the one that the cache was opened
// for. *computed: whether the bottom ran. Fails with IO, stating the space needed, if the disk is too full, and with
// INTERRUPTED soon after *stop becomes nonzero (NULL: never); then no file is left.
tarn_status tarn__frozen_pass(tarn__stepper *stepper, tarn__frozen_cache *cache, bool *computed, const char *path,
                              const tarn__shard *shard, const volatile sig_atomic_t *stop) TARN_CHECKED;

#endif

// AutoFreeze (Liu, Agarwal and Venkataraman 2021, "AutoFreeze: Automatically Freezing Model Blocks to Accelerate
// Fine-tuning"): layers are frozen from the bottom when their gradients have stabilised. The gradients of a layer are
// summed over an interval of updates. If G is the norm of that sum and G' that of the previous interval, the layer's
// change is |G' - G| / G'. Of the layers still trained, those below the lowest one whose change reaches the given
// percentile of all changes are frozen. At least one layer remains trained. As in the authors' program the norm is the
// sum of absolute values, gradients are taken before clipping, and the embedding is frozen with the first layer.
#ifndef TARN_TRAIN_FEATURES_AUTOFREEZE_H
#define TARN_TRAIN_FEATURES_AUTOFREEZE_H

#include "dist/optim_share.h"
#include "store/checkpoint.h"

// The number of `count` layers to freeze, given their changes from the bottom: 0 .. count - 1 (0 if count is 0). The
// percentile is interpolated linearly between two values, as by numpy.percentile().
size_t tarn__autofreeze_rule(const double *changes, size_t count, double percentile);

// Adds the gradients of an update to the sums; with a sharded optimiser, those of parts (after
// tarn__optim_parts_refresh()). The bits do not depend on the number of threads.
void tarn__autofreeze_add(const tarn__model *model, int threads);

// If a test is due after progress->update updates: sets progress->frozen_sets and norms, and clears the sums. `share`
// is used only if the model has shares_optimiser set.
tarn_status tarn__autofreeze_test(const tarn__model *model, tarn__optim_share *share,
                                  tarn__progress *progress) TARN_CHECKED;

#endif

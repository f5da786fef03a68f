// AutoFreeze (Liu, Agarwal and Venkataraman 2021, "AutoFreeze: Automatically Freezing Model Blocks to Accelerate
// Fine-tuning"): layers are frozen from the bottom when their gradients have settled. The gradients of a layer are
// summed over an interval of updates; with G the norm of that sum and G' that of the interval before, the layer's
// change is |G' - G| / G'. Of the layers that still learn, those below the lowest one whose change reaches the given
// percentile of all their changes are frozen. At least one layer goes on learning. As in the authors' program the norm
// is the sum of absolute values, the gradients are those before clipping, and the embedding is frozen with the first
// layer.
#ifndef TARN_TRAIN_FEATURES_AUTOFREEZE_H
#define TARN_TRAIN_FEATURES_AUTOFREEZE_H

#include "dist/optim_share.h"
#include "store/checkpoint.h"

// How many of `count` layers, given their changes from the bottom, are frozen: 0 .. count - 1 (0 of none). The
// percentile is interpolated linearly between two values, as numpy.percentile() does.
size_t tarn__autofreeze_rule(const double *changes, size_t count, double percentile);

// Adds the gradients of an update to the sums, of parts where ranks share the optimiser (tarn__optim_parts_refresh()
// came first). The bits do not depend on the number of threads.
void tarn__autofreeze_add(const tarn__model *model, int threads);

// If a test is due after progress->update updates: sets progress->frozen_sets and norms, and clears the sums. `share`
// is not looked at unless the model says shares_optimiser.
tarn_status tarn__autofreeze_test(const tarn__model *model, tarn__optim_share *share,
                                  tarn__progress *progress) TARN_CHECKED;

#endif

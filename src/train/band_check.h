// Are the bands of a vocabulary in the order of frequency, as adaptive input and adaptive softmax want it?
#ifndef TARN_TRAIN_BAND_CHECK_H
#define TARN_TRAIN_BAND_CHECK_H

#include "data/shard.h"
#include "description/description.h"

// Warns where the words of a band (model.adaptive_input_cutoff, adaptive_softmax_cutoff) occur more often, on the
// average, than those of the band before it: the model is as right, but its narrow vectors and its far softmaxes are
// those of frequent words. Looks at the first million tokens of each side.
tarn_status tarn__shard_warn_bands(const tarn__shard *shard, const tarn_config *config) TARN_CHECKED;

#endif

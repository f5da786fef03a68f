// Checks that a vocabulary is sorted by frequency band, as adaptive input and adaptive softmax require.
#ifndef TARN_TRAIN_BAND_CHECK_H
#define TARN_TRAIN_BAND_CHECK_H

#include "data/shard.h"
#include "description/description.h"

// Warns if the words of a band (model.adaptive_input_cutoff, adaptive_softmax_cutoff) occur more often on average than
// those of the previous band: the model is still correct, but frequent words get its narrow vectors and distant
// softmaxes. Examines the first million tokens of each side.
tarn_status tarn__shard_warn_bands(const tarn__shard *shard, const tarn_config *config) TARN_CHECKED;

#endif

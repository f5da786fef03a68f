// Freezing in the course of a training, by a schedule (train.freeze) or by AutoFreeze: layers stay as they are. Their
// gradients are not computed any more, and below them the backward pass goes only as far as something still learns.
#ifndef TARN_TRAIN_FEATURES_FREEZE_H
#define TARN_TRAIN_FEATURES_FREEZE_H

#include "config/config_freeze.h"
#include "model/model.h"

// Stops what is frozen after `update` updates by the schedule, and the `sets` lowest trained sets of the encoder by
// AutoFreeze, with the encoder's embedding unless it serves elsewhere too, and what the layers of a kind share with the
// last of them. Both are in the progress of a training, so a resumed one stops the same. What was stopped stays so.
// *names (NULL: not wanted) are the parts that were stopped now, in the model's order with spaces between them, or NULL
// where there are none; to be freed with tarn__free().
tarn_status tarn__freeze_apply(const tarn__model *model, int64_t update, int64_t sets, char **names) TARN_CHECKED;

// Steps through the trained sets of the encoder from the bottom, which AutoFreeze counts. Start with *at = 0; false
// past the last one.
bool tarn__freeze_next_set(const tarn__model *model, int *at, tarn__freeze_part *part);

#endif

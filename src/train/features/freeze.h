// Freezing during training, by a schedule (train.freeze) or by AutoFreeze: layers keep their values. Their gradients
// are no longer computed, and the backward pass continues below them only as far as something is trained.
#ifndef TARN_TRAIN_FEATURES_FREEZE_H
#define TARN_TRAIN_FEATURES_FREEZE_H

#include "config/config_freeze.h"
#include "model/model.h"

// Stops the parts frozen after `update` updates by the schedule, and the `sets` lowest trained sets of the encoder by
// AutoFreeze, with the encoder's embedding unless it is also used elsewhere. Parameters shared by the layers of a kind
// stop with the last of them. Both numbers are in the progress, so a resumed training run stops the same parts. Stopped
// parts stay stopped. *names (NULL: not wanted) are the parts stopped by this call, in the model's order and separated
// by spaces, or NULL if there are none; free with tarn__free().
tarn_status tarn__freeze_apply(const tarn__model *model, int64_t update, int64_t sets, char **names) TARN_CHECKED;

// Iterates over the trained sets of the encoder from the bottom, as counted by AutoFreeze. Start with *at = 0; false
// after the last one.
bool tarn__freeze_next_set(const tarn__model *model, int *at, tarn__freeze_part *part);

#endif

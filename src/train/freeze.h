// Staged freezing (train.freeze): from an update on, layers stay as they are. Their gradients are not computed any
// more, and below them the backward pass goes only as far as something still learns.
#ifndef TARN_TRAIN_FREEZE_H
#define TARN_TRAIN_FREEZE_H

#include "model/model.h"

// Stops the parameters that are frozen after `update` updates: a function of the configuration, so that a resumed
// training stops the same. Parameters that were stopped stay so.
void tarn__freeze_apply(const tarn__model *model, int64_t update);

// The parts that become frozen by having done `update` updates, as names with spaces between them in the model's order;
// *names is NULL where there are none. To be freed with tarn__free().
tarn_status tarn__freeze_due(char **names, const tarn_config *config, int64_t update) TARN_CHECKED;

#endif

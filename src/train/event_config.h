// The description of a run in TensorBoard's event files.
#ifndef TARN_TRAIN_EVENT_CONFIG_H
#define TARN_TRAIN_EVENT_CONFIG_H

#include "description/description.h"
#include "run/event_message.h"

// Adds two values to a summary (tensorflow/core/framework/summary.proto): the description as verbatim text, and each of
// its keys with a value as a hyper-parameter.
tarn_status tarn__event_config(tarn__message *summary, const tarn_config *config) TARN_CHECKED;

#endif

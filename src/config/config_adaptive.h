// Vocabularies in bands: adaptive input and adaptive softmax (model.adaptive_input_cutoff and related keys).
#ifndef TARN_CONFIG_ADAPTIVE_H
#define TARN_CONFIG_ADAPTIVE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// Checks these keys, and sets train.label_smoothing to 0 for an adaptive softmax if the file does not set it.
tarn_status tarn__config_resolve_adaptive(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

// Vocabularies in bands: adaptive input and adaptive softmax (model.adaptive_input_cutoff and the keys beside it).
#ifndef TARN_CONFIG_ADAPTIVE_H
#define TARN_CONFIG_ADAPTIVE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// Checks those keys, and sets train.label_smoothing to 0 for an adaptive softmax where the file does not say it.
tarn_status tarn__config_resolve_adaptive(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

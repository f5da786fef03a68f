// Sets of weights shared by encoder and decoder (model.share_stacks).
#ifndef TARN_CONFIG_SHARE_H
#define TARN_CONFIG_SHARE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// The lowest layer of the encoder whose set a layer of the decoder shares; -1: none.
int32_t tarn__config_shared_layer(const tarn_config *config, const tarn_layer *layer);

// Checks model.share_stacks.
tarn_status tarn__config_check_share(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

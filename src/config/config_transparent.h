// Transparent attention (Bapna et al. 2018): the checks of decoder.transparent_attention.
#ifndef TARN_CONFIG_CONFIG_TRANSPARENT_H
#define TARN_CONFIG_CONFIG_TRANSPARENT_H

#include "config/yaml_tree.h"
#include "description/description.h"

tarn_status tarn__config_check_transparent(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

// The blocks of a Funnel-Transformer: the checks of pool_after and upsample_after.
#ifndef TARN_CONFIG_CONFIG_FUNNEL_H
#define TARN_CONFIG_CONFIG_FUNNEL_H

#include "config/yaml_tree.h"
#include "description/description.h"

tarn_status tarn__config_check_funnel(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

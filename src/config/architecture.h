// Which stacks a model has.
#ifndef TARN_CONFIG_ARCHITECTURE_H
#define TARN_CONFIG_ARCHITECTURE_H

#include "config/yaml_tree.h"
#include "tarn/config.h"

// Fails where nothing is learnt by a model of the architecture that was asked for.
tarn_status tarn__config_check_architecture(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;
// Fills in model.architecture from the stacks that were read. Fails where the key says another thing than they do.
tarn_status tarn__config_resolve_architecture(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

// Which stacks a model has, and what it learns.
#ifndef TARN_CONFIG_ARCHITECTURE_H
#define TARN_CONFIG_ARCHITECTURE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// Fills in model.architecture from the stacks that were read, and model.task. Fails where a key says another thing than
// they do.
tarn_status tarn__config_resolve_architecture(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

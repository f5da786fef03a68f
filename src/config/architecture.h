// The stacks of a model and its task.
#ifndef TARN_CONFIG_ARCHITECTURE_H
#define TARN_CONFIG_ARCHITECTURE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// Fills in model.architecture from the stacks in the file, and model.task. Fails if a key contradicts the stacks.
tarn_status tarn__config_resolve_architecture(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

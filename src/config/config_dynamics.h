// Exponents over a training (docs/dynamics.md): the default that depends on valid, and keys without effect.
#ifndef TARN_CONFIG_CONFIG_DYNAMICS_H
#define TARN_CONFIG_CONFIG_DYNAMICS_H

#include "config/yaml_tree.h"
#include "description/description.h"

// Fails with USAGE for a key that has no effect because there is no input.
tarn_status tarn__config_resolve_dynamics(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

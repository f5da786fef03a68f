// Requirements on a description for computing the output layer in closed form (train.optimiser: ridge).
#ifndef TARN_CONFIG_CONFIG_RIDGE_H
#define TARN_CONFIG_CONFIG_RIDGE_H

#include <stdbool.h>

#include "config/yaml_tree.h"
#include "description/description.h"

// Whether an optimiser takes steps: false if the output layer is computed in closed form.
bool tarn__config_takes_steps(const tarn_config *config);

// With optimiser ridge: requires a language model with an output matrix of its own and a bias, without dropout, and no
// key for steps of an optimiser. With another one: no ridge. Fails with USAGE and a line that names the key. Whether
// anything else is trained is checked on the model (train/features/readout.h).
tarn_status tarn__config_check_ridge(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

// Requirements on a description for carrying recurrent states from window to window (train.carry_state), and for
// averaging checkpoints (train.average).
#ifndef TARN_CONFIG_CONFIG_CARRY_H
#define TARN_CONFIG_CONFIG_CARRY_H

#include <stdbool.h>

#include "config/yaml_tree.h"
#include "description/description.h"

// Whether the windows of a text continue those before them, so that it is read in tracks.
bool tarn__config_reads_tracks(const tarn_config *config);

// Requires a language model with a recurrent layer, all of whose layers run in every step. Fails with USAGE and a line
// that names the key. Whether the data are windows of a stream is checked when they are opened
// (train/features/carry_feature.c).
tarn_status tarn__config_check_carry(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

// Averaged checkpoints (train.average) must have equal frozen values, so no layer may redraw its features. Fails in the
// same way.
tarn_status tarn__config_check_average(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

// What a description must be for recurrent states to be carried from window to window (train.carry_state), and for the
// mean of checkpoints to be taken (train.average).
#ifndef TARN_CONFIG_CONFIG_CARRY_H
#define TARN_CONFIG_CONFIG_CARRY_H

#include <stdbool.h>

#include "config/yaml_tree.h"
#include "description/description.h"

// Whether the windows of a text go on with those before them, so that it is read in tracks.
bool tarn__config_reads_tracks(const tarn_config *config);

// A language model with a recurrent layer, all of whose layers run in every step. Fails with USAGE and a line that
// names the key. That the data are windows of a stream is seen when they are opened (train/features/carry_feature.c).
tarn_status tarn__config_check_carry(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

// Checkpoints of which the mean is taken (train.average) have equal frozen values, so that no layer draws its features
// anew. Fails in the same way.
tarn_status tarn__config_check_average(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

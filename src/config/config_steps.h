// Stacks that repeat their sets of weights: the steps of a Universal Transformer.
#ifndef TARN_CONFIG_CONFIG_STEPS_H
#define TARN_CONFIG_CONFIG_STEPS_H

#include "config/yaml_tree.h"
#include "description/description.h"

// The layers of a step: of `(A1 B1)*3` 2. 0: the stack is not one sequence of sets several times.
int tarn__config_step_layers(const tarn_stack *stack);

// Checks the keys step_embeddings, act_threshold and act_loss_weight of both stacks.
tarn_status tarn__config_check_steps(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

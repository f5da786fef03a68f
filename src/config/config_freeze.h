// The parts of a model that train.freeze can name, and the check of its entries.
#ifndef TARN_CONFIG_CONFIG_FREEZE_H
#define TARN_CONFIG_CONFIG_FREEZE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// The smallest things that can be frozen: an embedding matrix, a set of weights of a stack, the final norm of a stack,
// the biases of attention that its layers share.
typedef struct tarn__freeze_part {
  char name[TARN_CONFIG_SET_NAME + 16];  // what the names of its parameters begin with: "encoder.layer3"
  bool trained;                          // false: frozen from the start
  int layer;                             // of a set: the lowest depth that uses it, from 0; else -1
} tarn__freeze_part;

// Steps through the parts: embeddings, then the encoder from the bottom, then the decoder. Start with *at = 0; false
// past the last one.
bool tarn__freeze_next(const tarn_config *config, int *at, tarn__freeze_part *part);

// Whether `name` names the part or parameter `other`, or something that it belongs to.
bool tarn__freeze_covers(const char *name, const char *other);

// Fails with USAGE for a name that nothing has (and gives the nearest one), for what is frozen from the start or by two
// entries, where nothing would be left to train, and for train.autofreeze without a trained layer in the encoder.
tarn_status tarn__freeze_check(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

// What can only be said of a description that is trained, because a model of it may be pruned further: fails with USAGE
// where of the layers that layers_to_keep leaves nothing would be left to train in the end, or train.autofreeze finds
// no trained one in the encoder.
tarn_status tarn__freeze_check_training(const tarn_config *config) TARN_CHECKED;

// Warns where `place` calls a kind a reservoir that is trained.
void tarn__warn_trained_reservoirs(const tarn_config *config);

#endif

// The parts of a model that train.freeze can name, and the check of its entries.
#ifndef TARN_CONFIG_CONFIG_FREEZE_H
#define TARN_CONFIG_CONFIG_FREEZE_H

#include "config/yaml_tree.h"
#include "description/description.h"

// The smallest units that can be frozen: an embedding matrix, a set of weights of a stack, the final norm of a stack,
// the attention biases shared by its layers.
typedef struct tarn__freeze_part {
  char name[TARN_CONFIG_SET_NAME + 16];  // prefix of the names of its parameters: "encoder.layer3"
  bool trained;                          // false: frozen from the start
  int layer;                             // for a set: the lowest depth that uses it, from 0; else -1
} tarn__freeze_part;

// Iterates over the parts: embeddings, then the encoder from the bottom, then the decoder. Start with *at = 0; false
// after the last one.
bool tarn__freeze_next(const tarn_config *config, int *at, tarn__freeze_part *part);

// Whether `name` is the part or parameter `other`, or contains it.
bool tarn__freeze_covers(const char *name, const char *other);

// Fails with USAGE for an unknown name (suggesting the nearest), for a part frozen from the start or by two entries, if
// nothing would remain trained, and for train.autofreeze without a trained layer in the encoder.
tarn_status tarn__freeze_check(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

// Checks that apply only when a description is trained, because a model may be pruned further: fails with USAGE if, of
// the layers that layers_to_keep leaves, none would remain trained in the end, or train.autofreeze finds none trained
// in the encoder.
tarn_status tarn__freeze_check_training(const tarn_config *config) TARN_CHECKED;

// Warns if `place` calls a trained kind a reservoir.
void tarn__warn_trained_reservoirs(const tarn_config *config);

#endif

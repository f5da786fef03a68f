// The parts of reading a description that lie in files of their own.
#ifndef TARN_MODEL_CONFIG_READ_H
#define TARN_MODEL_CONFIG_READ_H

#include "model/config_options.h"
#include "model/yaml_tree.h"

struct tarn__config_memory {
  tarn__arena arena;
};

// Fills in the defaults that depend on other keys, and checks what concerns several keys at once. The tree gives the
// lines for messages.
tarn_status tarn__config_resolve(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

#endif

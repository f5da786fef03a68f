// The parts of reading a description that are in separate files.
#ifndef TARN_CONFIG_CONFIG_READ_H
#define TARN_CONFIG_CONFIG_READ_H

#include "config/config_options.h"
#include "config/yaml_tree.h"

struct tarn__config_memory {
  tarn__arena arena;
  tarn__yaml tree;  // as read and overridden, for messages
  tarn__yaml_node *root;
};

// Fills in defaults that depend on other keys, and makes checks that concern several keys. The tree provides the lines
// for messages.
tarn_status tarn__config_resolve(tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;

// A change to a description: an override as in tarn_config_read(), or a value of another YAML file for a key such as
// "kinds.R.heads", which keeps that file's name and line for messages.
typedef struct tarn__config_edit {
  const char *text;              // "key=value"; NULL: the next two
  const char *path;              // the key
  const tarn__yaml_node *value;  // a scalar or a list
} tarn__config_edit;

// tarn_config_parse() with changes of both forms, applied in order.
tarn_status tarn__config_parse_edited(tarn_config **out, const char *name, const char *text, size_t size,
                                      const tarn__config_edit *edits, size_t count) TARN_CHECKED;

#endif

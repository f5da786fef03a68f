// A description as a tree of its keys: text of values, and the keys in which two descriptions differ.
#ifndef TARN_ADVICE_ADVICE_TREE_H
#define TARN_ADVICE_ADVICE_TREE_H

#include "base/buffer.h"
#include "config/yaml_tree.h"
#include "tarn/config.h"

// Zero-initialise; close it also on failure.
typedef struct tarn__advice_tree {
  tarn__yaml yaml;
  tarn__yaml_node *root;
} tarn__advice_tree;

tarn_status tarn__advice_tree_open(tarn__advice_tree *tree, const tarn_config *config) TARN_CHECKED;
void tarn__advice_tree_close(tarn__advice_tree *tree);

// The map of a kind of the description.
const tarn__yaml_node *tarn__advice_kind_node(const tarn__advice_tree *tree, const char *name);

// Adds a value as it can be written in one line: "4", "{ type: glu, width: 64 }"; nothing for NULL.
void tarn__advice_value(tarn__buffer *out, const tarn__yaml_node *value);

// Whether two values are written alike; NULL is one of its own. Failures are those of the buffer.
tarn_status tarn__advice_same(bool *same, const tarn__yaml_node *a, const tarn__yaml_node *b) TARN_CHECKED;

// Calls `told` with each key, such as "kinds.L.heads", whose value in `tree` is not that in `base`; either value may be
// NULL, for a key that only the other one has. Maps that both have are entered.
typedef tarn_status tarn__advice_differs(void *user, const char *key, const tarn__yaml_node *value,
                                         const tarn__yaml_node *base);
tarn_status tarn__advice_compare(const tarn__yaml_node *tree, const tarn__yaml_node *base, tarn__advice_differs *told,
                                 void *user) TARN_CHECKED;

#endif

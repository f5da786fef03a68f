// A YAML document as a small tree that records the position of each value, so that messages can name file and line.
//
// libcyaml, which reads YAML into C structures by a schema, is not suitable: the keys under `kinds:` are chosen by the
// user, which its schema cannot express, and overrides from the command line edit the tree before it is read.
#ifndef TARN_CONFIG_YAML_TREE_H
#define TARN_CONFIG_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

typedef enum tarn__yaml_type { TARN__YAML_SCALAR, TARN__YAML_LIST, TARN__YAML_MAP } tarn__yaml_type;

typedef struct tarn__yaml_node {
  tarn__yaml_type type;
  const char *key;                // for an entry of a map, else NULL
  const char *text;               // for a scalar, without embedded zero bytes
  bool quoted;                    // a scalar in quotes is never empty or null
  const char *origin;             // file name, or the override
  int line;                       // of the key, or of the value if there is none; 0: no line (an override)
  struct tarn__yaml_node *first;  // children of a list or map, in textual order
  struct tarn__yaml_node *last;
  struct tarn__yaml_node *next;  // next sibling
} tarn__yaml_node;

// Zero-initialise. The contents of the tree live until tarn__yaml_close().
typedef struct tarn__yaml {
  tarn__arena arena;
  int count;  // nodes so far; limited
} tarn__yaml;

// Reads one document of `size` bytes into *root: an empty document is an empty scalar. Anchors, aliases, tags, several
// documents, duplicate keys, deep nesting and very many values are rejected. `lines`: whether messages name lines.
tarn_status tarn__yaml_parse(tarn__yaml *tree, tarn__yaml_node **root, const char *origin, bool lines, const char *text,
                             size_t size) TARN_CHECKED;
void tarn__yaml_close(tarn__yaml *tree);

// Copies a value of another tree, keeping its origin and line.
tarn_status tarn__yaml_copy(tarn__yaml *tree, tarn__yaml_node **out, const tarn__yaml_node *node) TARN_CHECKED;

// Whether a value is absent: nothing, `~` or `null` without quotes. Accepts NULL.
bool tarn__yaml_is_empty(const tarn__yaml_node *node);

// The entry of a map; NULL if there is none or `map` is NULL or not a map.
tarn__yaml_node *tarn__yaml_get(const tarn__yaml_node *map, const char *key);

// Removes an entry from a map if it exists.
void tarn__yaml_remove(tarn__yaml_node *map, const char *key);

// Replaces a scalar by the map { key: scalar }.
tarn_status tarn__yaml_wrap(tarn__yaml *tree, tarn__yaml_node *scalar, const char *key) TARN_CHECKED;

// Inserts `value` at a path such as "kinds.R.heads" below the map `root`, creating maps as needed and replacing an
// existing value.
tarn_status tarn__yaml_set(tarn__yaml *tree, tarn__yaml_node *root, const char *path,
                           tarn__yaml_node *value) TARN_CHECKED;

// The value at a path, or the nearest one above it that exists.
const tarn__yaml_node *tarn__yaml_nearest(const tarn__yaml_node *root, const char *path);

// The value at a path, or NULL.
const tarn__yaml_node *tarn__yaml_find(const tarn__yaml_node *root, const char *path);

// Fails with TARN_STATUS_USAGE and the line "origin:line: ...".
tarn_status tarn__yaml_fail(const tarn__yaml_node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same for a key, given by path: "origin:line: KEY: TEXT", with the line of the nearest map above it if it is not
// in the file.
tarn_status tarn__yaml_fail_key(const tarn__yaml_node *root, const char *key, const char *text) TARN_CHECKED;

// Copies text for a message, at most 48 bytes of it.
enum { TARN__YAML_SHOWN = 52 };
const char *tarn__yaml_show(char shown[TARN__YAML_SHOWN], const char *text);

#endif

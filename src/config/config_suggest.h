// Suggestions in messages about an unknown word or key: the nearest one with which the description would be accepted,
// which depends on its task and its other keys. The reader tests this by reading the changed description.
#ifndef TARN_CONFIG_CONFIG_SUGGEST_H
#define TARN_CONFIG_CONFIG_SUGGEST_H

#include "config/config_near.h"
#include "config/config_options.h"
#include "config/yaml_tree.h"

// The result of reading a changed tree.
typedef struct tarn__trial {
  tarn_status status;
  bool unknown;    // failed at an unknown key
  bool resolving;  // failed after all values were read
  char message[512];
} tarn__trial;

typedef struct tarn__suggest {
  // Reads the current tree into a separate configuration, without suggestions.
  void (*read)(tarn__trial *trial, void *reader);
  void *reader;
  tarn__yaml *tree;
  tarn__yaml_node *root;  // restored after each trial
  const char *map;        // the path of the current map: "kinds.L"; "": the file
  const char *key;        // the current key of that map
  bool farther;           // a nearer key was tried and would not be accepted
  tarn_status status;     // of a trial that ended for reasons other than the description, such as a lack of memory
} tarn__suggest;

// The word for a key, or NULL: another program's name for an entry, or the nearest, or one that begins with the given
// text.
const char *tarn__suggest_word(tarn__suggest *s, const tarn__option *option, const char *given);

// The nearest of keys, or NULL. `candidates` is modified.
const char *tarn__suggest_key(tarn__suggest *s, const char **candidates, size_t count);

// Whether the key could have this name, and whether it could be moved to a path of tarn__key_elsewhere(); `user` is the
// tarn__suggest.
bool tarn__suggest_fits(tarn__suggest *s, const char *name);
bool tarn__suggest_moves(void *user, const char *path);

#endif

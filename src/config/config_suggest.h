// What a message suggests in place of a word that no key takes, or of a key that there is not: the nearest one with
// which the description would be accepted, which depends on its task and its other keys. The reader finds out by
// reading it so.
#ifndef TARN_CONFIG_CONFIG_SUGGEST_H
#define TARN_CONFIG_CONFIG_SUGGEST_H

#include "config/config_near.h"
#include "config/config_options.h"
#include "config/yaml_tree.h"

// How a reading of a changed tree ended.
typedef struct tarn__trial {
  tarn_status status;
  bool unknown;    // at a key that its map does not have
  bool resolving;  // after all values were read
  char message[512];
} tarn__trial;

typedef struct tarn__suggest {
  // Reads the tree as it is now into a configuration of its own, without suggestions.
  void (*read)(tarn__trial *trial, void *reader);
  void *reader;
  tarn__yaml *tree;
  tarn__yaml_node *root;  // as it was before, after each question
  const char *map;        // the path of the map at hand: "kinds.L"; "": the file
  const char *key;        // the key at hand of that map
  bool farther;           // a nearer key was tried and would not be accepted
  tarn_status status;     // of what ended a reading that is not the description's affair, such as a lack of memory
} tarn__suggest;

// The word for a key, or NULL: one that another program uses for an entry, or the nearest, or one that begins with what
// was written.
const char *tarn__suggest_word(tarn__suggest *s, const tarn__option *option, const char *given);

// The nearest of keys, or NULL. `candidates` is written to.
const char *tarn__suggest_key(tarn__suggest *s, const char **candidates, size_t count);

// Whether the key could be called so, and whether it could stand at a path of tarn__key_elsewhere() instead; `user` is
// the tarn__suggest.
bool tarn__suggest_fits(tarn__suggest *s, const char *name);
bool tarn__suggest_moves(void *user, const char *path);

#endif

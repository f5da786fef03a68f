// Keys that stand elsewhere than where they were written, for messages.
#ifndef TARN_CONFIG_CONFIG_NEAR_H
#define TARN_CONFIG_CONFIG_NEAR_H

#include <stdbool.h>

enum { TARN__NEAR_PATH = 128 };

// The path of a key of that name, such as "kinds.NAME.heads" or "model.norm_type.epsilon", of all sections and parts:
// first of the section that `from`, the path of the map where it was written, lies in, and only one that `takes` takes.
// False if there is none.
bool tarn__key_elsewhere(char path[TARN__NEAR_PATH], const char *name, const char *from,
                         bool (*takes)(void *user, const char *path), void *user);

// The same of a key that other programs call so.
bool tarn__key_called(char path[TARN__NEAR_PATH], const char *name, const char *from,
                      bool (*takes)(void *user, const char *path), void *user);

// Cuts such a path down to the map that has the key: "kinds", "model.norm_type".
const char *tarn__key_map(char path[TARN__NEAR_PATH]);

#endif

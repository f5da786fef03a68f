// Keys that were written in the wrong place, for messages.
#ifndef TARN_CONFIG_CONFIG_NEAR_H
#define TARN_CONFIG_CONFIG_NEAR_H

#include <stdbool.h>

enum { TARN__NEAR_PATH = 128 };

// Finds the path of a key of that name, such as "kinds.NAME.heads" or "model.norm_type.epsilon", in all sections and
// parts, beginning with the section that contains `from`, the path of the map where it was written. Only keys accepted
// by `takes` are considered. False if there is none.
bool tarn__key_elsewhere(char path[TARN__NEAR_PATH], const char *name, const char *from,
                         bool (*takes)(void *user, const char *path), void *user);

// The same for a key that other programs call by this name.
bool tarn__key_called(char path[TARN__NEAR_PATH], const char *name, const char *from,
                      bool (*takes)(void *user, const char *path), void *user);

// Truncates such a path to the map that has the key: "kinds", "model.norm_type".
const char *tarn__key_map(char path[TARN__NEAR_PATH]);

#endif

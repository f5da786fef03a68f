// Seeds in train.init_from: in a sweep, {seed} stands for the seed of each run.
#ifndef TARN_CONFIG_CONFIG_SEED_H
#define TARN_CONFIG_CONFIG_SEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

// Whether a path (or NULL) has {seed}.
bool tarn__config_has_seed(const char *path);
// Adds the path with the seed in its places.
void tarn__config_place_seed(tarn__buffer *out, const char *path, int64_t seed);
// Adds the change of a configuration (config_read.h) that sets train.init_from to a path.
void tarn__config_init_from(tarn__buffer *out, const char *path);

#endif

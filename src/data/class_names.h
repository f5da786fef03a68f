// Names of classes: either collected in the order of the rows and then numbered in byte order, so that the numbers do
// not depend on the order of the rows; or a closed set.
#ifndef TARN_DATA_CLASS_NAMES_H
#define TARN_DATA_CLASS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/status.h"

// Whether a class may have this name: what the functions below add, and no other name is in a shard.
bool tarn__class_name_valid(const char *name, size_t length);

// Zero-initialise.
typedef struct tarn__class_names {
  char **names;
  int32_t count;
  // Private.
  size_t capacity;
  tarn__index index;
} tarn__class_names;

// The number of a name (its index in `names`), or -1.
int32_t tarn__class_names_find(const tarn__class_names *classes, const char *name, size_t length);
// Adds a new name. Fails with DATA if it is too long, begins with a bar or has control characters, or if there are too
// many names (data/shard_format.h); the message names no place.
tarn_status tarn__class_names_add(tarn__class_names *classes, const char *name, size_t length) TARN_CHECKED;
// Sorts the names: number n becomes number rank[n] (of `count`). Afterwards names can be neither added nor found.
tarn_status tarn__class_names_sort(tarn__class_names *classes, int32_t *rank) TARN_CHECKED;
void tarn__class_names_close(tarn__class_names *classes);

#endif

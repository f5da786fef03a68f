// Names of classes: collected in the order in which they come, and then numbered in the order of their bytes, so that
// their numbers do not depend on that of the rows; or a closed set, which nothing is added to.
#ifndef TARN_DATA_CLASS_NAMES_H
#define TARN_DATA_CLASS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/status.h"

// Zero-initialise.
typedef struct tarn__class_names {
  char **names;
  int32_t count;
  // Private.
  size_t capacity;
  tarn__index index;
} tarn__class_names;

// The number of a name, or -1. Numbers are places in `names`.
int32_t tarn__class_names_find(const tarn__class_names *classes, const char *name, size_t length);
// Adds a name that is not there. Fails with DATA where it is too long, begins with a bar or has control characters, or
// where there are too many (data/shard_format.h); the line does not say where.
tarn_status tarn__class_names_add(tarn__class_names *classes, const char *name, size_t length) TARN_CHECKED;
// Sorts them: what was number n is number rank[n] (of `count`) then. No more names may be added or found.
tarn_status tarn__class_names_sort(tarn__class_names *classes, int32_t *rank) TARN_CHECKED;
void tarn__class_names_close(tarn__class_names *classes);

#endif

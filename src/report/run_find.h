// Finds the run directories and sweeps below a path.
#ifndef TARN_REPORT_RUN_FIND_H
#define TARN_REPORT_RUN_FIND_H

#include "base/memory.h"

// A run, or a sweep's folder.
typedef struct tarn__found {
  const char *path;
  bool sweep;
} tarn__found;

// Zero-initialise; items are freed with tarn__free(), the arena owns their paths.
typedef struct tarn__found_list {
  tarn__found *items;
  size_t count, capacity;
} tarn__found_list;

// Adds the runs and sweeps at or below a path, in the order of the names (numbers by value). Runs and sweeps are not
// searched further. Symbolic links below the path are not followed. Fails with USAGE if there is nothing, IO if the
// path cannot be read.
tarn_status tarn__run_find(tarn__found_list *list, const char *path, tarn__arena *arena) TARN_CHECKED;

#endif

// What tarn_results_open() collects; for the files that build it.
#ifndef TARN_REPORT_RESULTS_MEMORY_H
#define TARN_REPORT_RESULTS_MEMORY_H

#include "base/hash.h"
#include "base/memory.h"
#include "tarn/lab/results.h"

// A group while it is built; its list of runs moves into the arena in the end.
typedef struct tarn__results_group {
  tarn_results_group public;
  char key[TARN__HASH_TEXT];  // of the configuration without its seed; "" while no run has begun
  const char *grid;           // full name of the variant whose grid it is a point of; NULL: of none
  size_t *runs;
  size_t count, capacity;
} tarn__results_group;

struct tarn__results_memory {
  tarn_results public;
  tarn__arena arena;
  tarn_results_run *runs;
  tarn_config **configs;    // of each run, or NULL
  const char **real_paths;  // of each run that has a directory, or NULL
  size_t count, runs_capacity, configs_capacity, paths_capacity;
  tarn__results_group *groups;
  size_t group_count, group_capacity;
};

// Reads the directory of a new run of a group, or of a group found by its configuration if `group` is the number of
// groups. A directory that is not there makes a pending run, for groups that exist.
tarn_status tarn__results_add_run(struct tarn__results_memory *m, const char *path, size_t group,
                                  int64_t seed) TARN_CHECKED;
// Adds an empty group; the texts live in the arena.
tarn_status tarn__results_add_group(struct tarn__results_memory *m, const char *name, const char *changes,
                                    const char *equalized) TARN_CHECKED;
// Changes *name where it, or a name below it, is another group's already: to the path, or to "NAME (2)", "NAME (3)",
// ...
tarn_status tarn__results_free_name(const char **name, struct tarn__results_memory *m, const char *path) TARN_CHECKED;
// Reads a sweep's folder. `alone`: nothing else is read, so the sweep's name, baseline and budget are those of all, and
// groups have the variants' bare names; otherwise "SWEEP/VARIANT", or
// "PATH/VARIANT" where another sweep has the name.
tarn_status tarn__results_add_sweep(struct tarn__results_memory *m, const char *path, bool alone) TARN_CHECKED;

// Keeps, of the points of each grid, the one with the best validation, under the name of its variant. `groups` and the
// public lists must be complete.
tarn_status tarn__results_choose(struct tarn__results_memory *m, tarn_results_group *groups) TARN_CHECKED;

#endif

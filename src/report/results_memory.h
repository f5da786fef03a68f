// The data collected by tarn_results_open(), for the files that build it.
#ifndef TARN_REPORT_RESULTS_MEMORY_H
#define TARN_REPORT_RESULTS_MEMORY_H

#include "base/hash.h"
#include "base/memory.h"
#include "run/run_file.h"
#include "tarn/lab/results.h"

// A group under construction; its list of runs moves into the arena at the end.
typedef struct tarn__results_group {
  tarn_results_group public;
  char key[TARN__HASH_TEXT];  // of the configuration without its seed; "" until a run has started
  const char *body;           // train.init_from of the variant, with {seed}; NULL: without
  const char *grid;           // full name of the variant whose grid this is a point of; NULL: none
  size_t *runs;
  size_t count, capacity;
} tarn__results_group;

struct tarn__results_memory {
  tarn_results public;
  tarn__arena arena;
  tarn_results_run *runs;
  tarn_config **configs;    // of each run, or NULL
  const char **real_paths;  // of each run with a directory, or NULL
  size_t count, runs_capacity, configs_capacity, paths_capacity;
  tarn__results_group *groups;
  size_t group_count, group_capacity;
  size_t plans;  // sequential designs of the sweeps
};

// Reads the directory of a new run of a group, or of a group found by its configuration if `group` is the number of
// groups. A missing directory makes a pending run, for existing groups.
tarn_status tarn__results_add_run(struct tarn__results_memory *m, const char *path, size_t group,
                                  int64_t seed) TARN_CHECKED;
// Adds an empty group; the arena owns the texts.
tarn_status tarn__results_add_group(struct tarn__results_memory *m, const char *name, const char *changes,
                                    const char *equalized) TARN_CHECKED;
// Changes *name if another group already has it, or a name below it: to the path, or to "NAME (2)", "NAME (3)", ...
tarn_status tarn__results_free_name(const char **name, struct tarn__results_memory *m, const char *path) TARN_CHECKED;
// Reads a sweep's folder. `alone`: nothing else is read, so the sweep's name, baseline and budget are those of the
// results, and groups have the variants' plain names; otherwise "SWEEP/VARIANT", or "PATH/VARIANT" if another sweep has
// the same name.
tarn_status tarn__results_add_sweep(struct tarn__results_memory *m, const char *path, bool alone) TARN_CHECKED;

// --- results_processor.c
// Whether two runs had the same processor, kernels and number of threads.
bool tarn__results_same_processor(const tarn_results_run *a, const tarn_results_run *b);
// A run of the processor that times are of, where finished runs are of several: the one with most configurations, of
// several the one with most runs. NULL: they are of one.
const tarn_results_run *tarn__results_processor(const tarn_results *results);
// "AMD EPYC (avx512_bf16, 1 thread)"
tarn_status tarn__results_processor_text(const char **text, const tarn_results_run *run,
                                         tarn__arena *arena) TARN_CHECKED;

// Reads the sequential design of a sweep.json, for the results if the sweep is `alone`. *first: the number of seeds
// that it was begun with: runs of later ones that have no directory are none. results_sequential.c.
tarn_status tarn__results_sequential(struct tarn__results_memory *m, size_t *first, const tarn__run_file *file,
                                     bool alone) TARN_CHECKED;

// Keeps the point of each grid with the best validation, under the name of its variant. `groups` and the public lists
// must be complete.
tarn_status tarn__results_choose(struct tarn__results_memory *m, tarn_results_group *groups) TARN_CHECKED;

#endif

// The run directory: paths, lock, numbered checkpoints. The names are in run/names.h.
#ifndef TARN_RUN_RUN_DIR_H
#define TARN_RUN_RUN_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Zero-initialise with lock = -1, or open.
typedef struct tarn__run_dir {
  char *path;
  int lock;
  // Full paths.
  char *config, *log, *last, *best, *average, *cache, *result;
} tarn__run_dir;

// Makes the folder if necessary, locks it, and removes temporary files of killed processes. Fails with IO (naming what
// cannot be made or written) or BUSY.
tarn_status tarn__run_dir_open(tarn__run_dir *dir, const char *path) TARN_CHECKED;
// The same without making or locking.
tarn_status tarn__run_dir_look(tarn__run_dir *dir, const char *path) TARN_CHECKED;
void tarn__run_dir_close(tarn__run_dir *dir);

// Fails with USAGE unless there is a configuration to continue with.
tarn_status tarn__run_dir_check(const tarn__run_dir *dir) TARN_CHECKED;
// Writes config.yaml.
tarn_status tarn__run_dir_write_config(const tarn__run_dir *dir, const char *text) TARN_CHECKED;

// The numbered checkpoints in ascending order; free with tarn__run_dir_list_close().
typedef struct tarn__run_dir_list {
  char **paths;
  int64_t *updates;
  size_t count;
} tarn__run_dir_list;
tarn_status tarn__run_dir_numbered(const tarn__run_dir *dir, tarn__run_dir_list *list) TARN_CHECKED;
void tarn__run_dir_list_close(tarn__run_dir_list *list);

// The path of a numbered checkpoint, to be freed with tarn__free().
tarn_status tarn__run_dir_number(const tarn__run_dir *dir, char **path, int64_t update) TARN_CHECKED;
// Removes all but the `keep` newest numbered checkpoints.
tarn_status tarn__run_dir_prune(const tarn__run_dir *dir, int64_t keep) TARN_CHECKED;

#endif

// Which checkpoint of a run directory is meant.
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "model/checkpoint.h"

// A folder of several seeds has a run directory for each.
static tarn_status fail_none(const char *path) {
  char pattern[PATH_MAX];
  glob_t found;
  if (snprintf(pattern, sizeof pattern, "%s/seed-*", path) < (int)sizeof pattern &&
      glob(pattern, 0, NULL, &found) == 0) {
    tarn_status status =
        tarn__fail(TARN_STATUS_DATA, "%s: a folder of runs with several seeds; name one of them, such as %s", path,
                   found.gl_pathv[0]);
    globfree(&found);
    return status;
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: there is no checkpoint in this folder", path);
}

tarn_status tarn__checkpoint_find(char **file, const char *path) {
  static const char *const names[] = {TARN__CHECKPOINT_AVERAGE, TARN__CHECKPOINT_BEST, TARN__CHECKPOINT_LAST};
  *file = NULL;
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return tarn__strdup(file, path);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[PATH_MAX];
    TARN_TRY(tarn__path_join(name, path, names[i]));
    if (tarn__file_exists(name)) return tarn__strdup(file, name);
  }
  return fail_none(path);
}

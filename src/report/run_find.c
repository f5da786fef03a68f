#include "report/run_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "report/run_read.h"
#include "run/file_kind.h"
#include "run/names.h"
#include "run/run_file.h"

enum { DEEPEST = 4 };  // levels below the path

static bool is_sweep(const char *path) {
  char file[PATH_MAX];
  return snprintf(file, sizeof file, "%s/" TARN__SWEEP_JSON, path) < (int)sizeof file && tarn__file_exists(file);
}

static int by_version(const void *a, const void *b) { return strverscmp(*(char *const *)a, *(char *const *)b); }

// Symbolic links are not followed: they may lead to a run that is found elsewhere, or form a cycle.
static void warn_of_link(const char *path, const char *name) {
  char below[PATH_MAX];
  if (snprintf(below, sizeof below, "%s/%s", path, name) >= (int)sizeof below) return;
  if (is_sweep(below) || tarn__run_is(below))
    tarn__log(TARN_LOG_WARNING, "%s is a link to runs and is left out; name it to have them compared", below);
}

// The names of the subfolders of a folder, sorted; the names and the list are freed with tarn__free().
static tarn_status list_folders(char ***names, size_t *count, const char *path) {
  size_t capacity = 0;
  *names = NULL;
  *count = 0;
  DIR *folder = opendir(path);
  TARN_REQUIRE(folder, IO, "%s: cannot read: %s", path, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    struct stat info;
    if (entry->d_name[0] == '.') continue;
    if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISLNK(info.st_mode)) warn_of_link(path, entry->d_name);
    if (!S_ISDIR(info.st_mode)) continue;
    status = tarn__grow(names, &capacity, *count + 1, sizeof **names);
    if (status == TARN_STATUS_OK) status = tarn__strdup(&(*names)[*count], entry->d_name);
    if (status == TARN_STATUS_OK) ++*count;
  }
  closedir(folder);
  if (*count) qsort(*names, *count, sizeof **names, by_version);
  return status;
}

static tarn_status search(tarn__found_list *list, const char *path, int depth, tarn__arena *arena) {
  bool sweep = is_sweep(path);
  if (sweep || tarn__run_is(path)) {
    TARN_TRY(tarn__grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    list->items[list->count++] = (tarn__found){path, sweep};
    return TARN_STATUS_OK;
  }
  if (depth == DEEPEST) return TARN_STATUS_OK;
  char **names;
  size_t count;
  tarn_status status = list_folders(&names, &count, path);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const char *below;
    status = tarn__join(&below, arena, path, names[i]);
    if (status == TARN_STATUS_OK) status = search(list, below, depth + 1, arena);
  }
  for (size_t i = 0; i < count; i++) tarn__free(names[i]);
  tarn__free(names);
  return status;
}

tarn_status tarn__run_find(tarn__found_list *list, const char *path, tarn__arena *arena) {
  char *copy;
  size_t before = list->count;
  TARN_TRY(tarn__arena_strdup(arena, &copy, path));
  for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/';) copy[--length] = '\0';
  tarn_status status = search(list, copy, 0, arena);
  if (status != TARN_STATUS_OK) return tarn__file_kind_explain(status, copy, TARN__FILE_KIND_RUN);
  TARN_REQUIRE(list->count > before, USAGE,
               "%s: there is no run in it; a run directory has " TARN__RUN_CONFIG " and " TARN__RUN_LOG
               ", a sweep's folder " TARN__SWEEP_JSON,
               path);
  return TARN_STATUS_OK;
}

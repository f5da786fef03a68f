#include "run/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/temporary.h"
#include "run/file_kind.h"
#include "run/names.h"

static tarn_status join(char **path, const char *folder, const char *name) {
  char text[PATH_MAX];
  TARN_TRY(tarn__path_join(text, folder, name));
  return tarn__strdup(path, text);
}

static tarn_status set_paths(tarn__run_dir *dir, const char *path) {
  TARN_TRY(tarn__strdup(&dir->path, path));
  size_t length = strlen(dir->path);
  while (length > 1 && dir->path[length - 1] == '/') dir->path[--length] = '\0';
  TARN_TRY(join(&dir->config, dir->path, TARN__RUN_CONFIG));
  TARN_TRY(join(&dir->log, dir->path, TARN__RUN_LOG));
  TARN_TRY(join(&dir->last, dir->path, TARN__CHECKPOINT_LAST));
  TARN_TRY(join(&dir->best, dir->path, TARN__CHECKPOINT_BEST));
  TARN_TRY(join(&dir->result, dir->path, TARN__RUN_RESULT));
  TARN_TRY(join(&dir->cache, dir->path, TARN__RUN_CACHE));
  return join(&dir->average, dir->path, TARN__CHECKPOINT_AVERAGE);
}

static tarn_status make_and_lock(tarn__run_dir *dir) {
  char *lock;
  TARN_TRY(tarn__mkdir(dir->path));
  TARN_TRY(join(&lock, dir->path, TARN__RUN_LOCK));
  tarn_status status = tarn__lock(&dir->lock, lock);
  tarn__free(lock);
  return status;
}

// The number of "checkpoint_<number>.safetensors", or -1.
static int64_t number_of(const char *name) {
  char again[64];
  long long number;
  if (sscanf(name, TARN__CHECKPOINT_NUMBERED, &number) != 1 || number < 0) return -1;
  snprintf(again, sizeof again, TARN__CHECKPOINT_NUMBERED, number);
  return strcmp(again, name) == 0 ? (int64_t)number : -1;
}

// Whether a training writes a file of this name in its folder.
static bool is_own(const tarn__run_dir *dir, const char *name) {
  const char *const paths[] = {dir->config, dir->log, dir->last, dir->best, dir->average, dir->cache, dir->result};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (strcmp(strrchr(paths[i], '/') + 1, name) == 0) return true;
  return number_of(name) >= 0;
}

// Removes temporary files (base/temporary.h) of killed processes; the lock ensures that none of them is running. The
// names of a run's files are short enough to be kept whole.
static void remove_half_written(const tarn__run_dir *dir) {
  DIR *folder = opendir(dir->path);
  if (!folder) return;
  for (const struct dirent *entry; (entry = readdir(folder));) {
    char name[sizeof entry->d_name];
    snprintf(name, sizeof name, "%s", entry->d_name);
    char *mark = strstr(name, TARN__TEMPORARY_MARK);
    if (!mark) continue;
    *mark = '\0';
    if (tarn__temporary_number(mark + strlen(TARN__TEMPORARY_MARK)) && is_own(dir, name))
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

tarn_status tarn__run_dir_look(tarn__run_dir *dir, const char *path) {
  *dir = (tarn__run_dir){.lock = -1};
  tarn_status status = set_paths(dir, path);
  if (status != TARN_STATUS_OK) tarn__run_dir_close(dir);
  return status;
}

tarn_status tarn__run_dir_open(tarn__run_dir *dir, const char *path) {
  TARN_TRY(tarn__run_dir_look(dir, path));
  tarn_status status = make_and_lock(dir);
  if (status == TARN_STATUS_OK)
    remove_half_written(dir);
  else
    tarn__run_dir_close(dir);
  return status;
}

void tarn__run_dir_close(tarn__run_dir *dir) {
  tarn__unlock(&dir->lock);
  tarn__free(dir->path);
  tarn__free(dir->config);
  tarn__free(dir->log);
  tarn__free(dir->last);
  tarn__free(dir->best);
  tarn__free(dir->average);
  tarn__free(dir->cache);
  tarn__free(dir->result);
  *dir = (tarn__run_dir){.lock = -1};
}

tarn_status tarn__run_dir_check(const tarn__run_dir *dir) {
  if (tarn__file_exists(dir->config)) return TARN_STATUS_OK;
  tarn_status status = tarn__fail(TARN_STATUS_USAGE, "%s: no run to resume: there is no " TARN__RUN_CONFIG, dir->path);
  return tarn__file_kind_explain(status, dir->path, TARN__FILE_KIND_RUN);
}

tarn_status tarn__run_dir_write_config(const tarn__run_dir *dir, const char *text) {
  return tarn__file_write(dir->config, text, strlen(text));
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static tarn_status read_numbers(const tarn__run_dir *dir, int64_t **numbers, size_t *count) {
  size_t capacity = 0;
  *numbers = NULL;
  *count = 0;
  DIR *folder = opendir(dir->path);
  TARN_REQUIRE(folder, IO, "%s: cannot read: %s", dir->path, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    int64_t number = number_of(entry->d_name);
    if (number < 0) continue;
    status = tarn__grow(numbers, &capacity, *count + 1, sizeof **numbers);
    if (status == TARN_STATUS_OK) (*numbers)[(*count)++] = number;
  }
  closedir(folder);
  if (*count) qsort(*numbers, *count, sizeof **numbers, by_number);
  return status;
}

tarn_status tarn__run_dir_number(const tarn__run_dir *dir, char **path, int64_t update) {
  char name[64];
  snprintf(name, sizeof name, TARN__CHECKPOINT_NUMBERED, (long long)update);
  return join(path, dir->path, name);
}

tarn_status tarn__run_dir_numbered(const tarn__run_dir *dir, tarn__run_dir_list *list) {
  *list = (tarn__run_dir_list){0};
  void *memory = NULL;
  tarn_status status = read_numbers(dir, &list->updates, &list->count);
  if (status == TARN_STATUS_OK) status = tarn__alloc(&memory, TARN__MEMORY_OTHER, list->count, sizeof(char *));
  list->paths = memory;
  for (size_t i = 0; i < list->count && status == TARN_STATUS_OK; i++)
    status = tarn__run_dir_number(dir, &list->paths[i], list->updates[i]);
  if (status != TARN_STATUS_OK) tarn__run_dir_list_close(list);
  return status;
}

void tarn__run_dir_list_close(tarn__run_dir_list *list) {
  for (size_t i = 0; list->paths && i < list->count; i++) tarn__free(list->paths[i]);
  tarn__free(list->paths);
  tarn__free(list->updates);
  *list = (tarn__run_dir_list){0};
}

tarn_status tarn__run_dir_prune(const tarn__run_dir *dir, int64_t keep) {
  tarn__run_dir_list list;
  TARN_TRY(tarn__run_dir_numbered(dir, &list));
  for (size_t i = 0; i < list.count && (int64_t)(list.count - i) > keep; i++) unlink(list.paths[i]);
  tarn__run_dir_list_close(&list);
  return TARN_STATUS_OK;
}

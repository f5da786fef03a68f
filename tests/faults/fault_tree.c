#include "fault_tree.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void give_up(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(3);
}

char *file_contents(const char *path, size_t *size) {
  struct stat info;
  FILE *file = fopen(path, "rb");
  if (!file || fstat(fileno(file), &info) != 0) give_up("%s: cannot read: %s", path, strerror(errno));
  char *data = malloc((size_t)info.st_size + 1);
  *size = data ? fread(data, 1, (size_t)info.st_size, file) : 0;
  fclose(file);
  if (!data || *size != (size_t)info.st_size) give_up("%s: cannot read", path);
  data[*size] = '\0';
  return data;
}

void file_put(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
    give_up("%s: cannot write: %s", path, strerror(errno));
}

// FNV-1a: nobody attacks these files.
static uint64_t hash_of(const char *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3;
  return hash;
}

// Leaves out `count` bytes at `at`.
static size_t cut(char *data, size_t size, char *at, size_t count) {
  memmove(at, at + count, size - (size_t)(at + count - data));
  return size - count;
}

// Leaves out the digits of "peak_bytes": 123, also where it stands in a text of JSON (\"peak_bytes\":123).
static size_t without_measured(char *data, size_t size) {
  static const char key[] = "peak_bytes";
  char *at = memmem(data, size, key, sizeof key - 1);
  if (!at) return size;
  at += sizeof key - 1;
  at += strspn(at, "\\\": ");
  return cut(data, size, at, strspn(at, "0123456789"));
}

// Of a checkpoint also its own hash, the length of its header and the spaces behind that, which depend on the digits.
static size_t without_measured_header(char *data, size_t size) {
  uint64_t length;
  if (size < sizeof length) return size;
  memcpy(&length, data, sizeof length);
  if (length > size - sizeof length || !memmem(data, size, "peak_bytes", 10)) return size;
  char *end = data + sizeof length + length;
  char *spaces = end;
  while (spaces > data + sizeof length && spaces[-1] == ' ') spaces--;
  size = cut(data, size, spaces, (size_t)(end - spaces));
  size = cut(data, size, data, sizeof length);
  static const char hash[] = "\"tarn.hash\":\"";
  char *at = memmem(data, size, hash, sizeof hash - 1);
  if (at) size = cut(data, size, at + sizeof hash - 1, strspn(at + sizeof hash - 1, "0123456789abcdef"));
  return without_measured(data, size);
}

static tree *reading;  // nftw() hands nothing through
static size_t root_length;
static const char *copy_to;

// Each process of a training has a lock and an event file of its own, named and filled by its number.
static bool is_of_process(const char *name) {
  const char *end = strrchr(name, '.');
  return strcmp(name, "lock") == 0 || (end && strcmp(end, ".lock") == 0) ||
         strncmp(name, "events.out.tfevents.", 20) == 0;
}

static int read_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
  tree *t = reading;
  size_t size;
  if (type != FTW_F || !S_ISREG(info->st_mode) || is_of_process(path + ftw->base)) return 0;
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? 2 * t->capacity : 32;
    t->files = realloc(t->files, t->capacity * sizeof *t->files);
    if (!t->files) give_up("out of memory");
  }
  char *data = file_contents(path, &size);
  size_t kept = strstr(path, ".json")          ? without_measured(data, size)
                : strstr(path, ".safetensors") ? without_measured_header(data, size)
                                               : size;
  t->files[t->count++] = (tree_file){strdup(path + root_length + 1), hash_of(data, kept), size};
  free(data);
  return 0;
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const tree_file *)a)->path, ((const tree_file *)b)->path);
}

void tree_read(tree *t, const char *folder) {
  *t = (tree){0};
  reading = t;
  root_length = strlen(folder);
  if (nftw(folder, read_one, 16, FTW_PHYS) != 0) give_up("%s: cannot read: %s", folder, strerror(errno));
  if (t->count) qsort(t->files, t->count, sizeof *t->files, by_path);
}

void tree_close(tree *t) {
  for (size_t i = 0; i < t->count; i++) free(t->files[i].path);
  free(t->files);
  *t = (tree){0};
}

const tree_file *tree_find(const tree *t, const char *path) {
  tree_file wanted = {.path = (char *)(uintptr_t)path};
  return t->count ? bsearch(&wanted, t->files, t->count, sizeof *t->files, by_path) : NULL;
}

bool tree_has(const tree *t, const tree_file *file) {
  const tree_file *own = tree_find(t, file->path);
  return own && own->hash == file->hash;
}

static int copy_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
  char target[PATH_MAX];
  size_t size;
  (void)ftw;
  (void)!snprintf(target, sizeof target, "%s%s", copy_to, path + root_length);
  if (type == FTW_D && mkdir(target, 0777) != 0 && errno != EEXIST) give_up("%s: %s", target, strerror(errno));
  if (type != FTW_F || !S_ISREG(info->st_mode)) return 0;
  char *data = file_contents(path, &size);
  file_put(target, data, size);
  free(data);
  return 0;
}

void tree_copy(const char *from, const char *to) {
  tree_remove(to);
  copy_to = to;
  root_length = strlen(from);
  if (nftw(from, copy_one, 16, FTW_PHYS) != 0) give_up("%s: cannot copy: %s", from, strerror(errno));
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
  (void)info;
  (void)type;
  (void)ftw;
  return remove(path);
}

void tree_remove(const char *folder) {
  if (access(folder, F_OK) == 0 && nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
    give_up("%s: cannot remove: %s", folder, strerror(errno));
}

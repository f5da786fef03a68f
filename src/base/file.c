#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"

static tarn_status fail_errno(const char *action, const char *path) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

tarn_status tarn__file_read(const char *path, char **data, size_t *size) {
  *data = NULL;
  *size = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return fail_errno("read", path);
  tarn_status status = TARN_STATUS_OK;
  size_t capacity = 0;
  size_t used = 0;
  for (;;) {
    status = tarn__grow(data, &capacity, used + (1 << 16) + 1, 1);
    if (status != TARN_STATUS_OK) break;
    size_t got = fread(*data + used, 1, capacity - used - 1, file);
    used += got;
    if (got > 0) continue;
    if (ferror(file) && errno == EINTR) {  // a signal came first
      clearerr(file);
      continue;
    }
    if (ferror(file)) status = fail_errno("read", path);
    break;
  }
  fclose(file);
  if (status != TARN_STATUS_OK) {
    tarn__free(*data);
    *data = NULL;
    return status;
  }
  (*data)[used] = '\0';
  *size = used;
  return TARN_STATUS_OK;
}

tarn_status tarn__file_write(const char *path, const void *data, size_t size) {
  tarn__writer *writer;
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = tarn__writer_put(writer, data, size);
  if (status != TARN_STATUS_OK) {
    tarn__writer_abort(&writer);
    return status;
  }
  return tarn__writer_commit(&writer);
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

tarn_status tarn__mkdir(const char *path) {
  char name[PATH_MAX];
  TARN_REQUIRE(*path, IO, "cannot make a folder without a name");
  TARN_REQUIRE(snprintf(name, sizeof name, "%s", path) < (int)sizeof name, IO, "%s: the path is too long", path);
  for (char *p = name + 1;; p++) {
    if (*p != '/' && *p != '\0') continue;
    char keep = *p;
    *p = '\0';
    if (mkdir(name, 0777) == 0) {
      tarn__sync_folder_of(name);
    } else {
      int reason = errno;  // an existing folder can also cause EROFS or EACCES
      if (!is_folder(name)) {
        errno = reason == EEXIST ? ENOTDIR : reason;
        return fail_errno("make the folder", path);
      }
    }
    *p = keep;
    if (keep == '\0') return TARN_STATUS_OK;
  }
}

tarn_status tarn__file_copy(const char *from, const char *to, const char *name) {
  char source[PATH_MAX];
  char target[PATH_MAX];
  struct stat info;
  tarn__map map = {0};
  TARN_TRY(tarn__path_join(source, from, name));
  TARN_TRY(tarn__path_join(target, to, name));
  if (lstat(source, &info) != 0 || !S_ISREG(info.st_mode)) return TARN_STATUS_OK;
  TARN_TRY(tarn__map_open(&map, source));
  tarn__writer *writer = NULL;
  tarn_status status = tarn__writer_open(&writer, target);
  if (status == TARN_STATUS_OK) status = tarn__map_judge(&map, tarn__writer_put(writer, map.data, map.size));
  if (status == TARN_STATUS_OK) status = tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  tarn__map_close(&map);
  return status;
}

tarn_status tarn__mkdir_of_file(const char *path) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  if (!slash || slash == path) return TARN_STATUS_OK;
  TARN_REQUIRE(slash - path < PATH_MAX, IO, "%s: the path is too long", path);
  memcpy(folder, path, (size_t)(slash - path));
  folder[slash - path] = '\0';
  return tarn__mkdir(folder);
}

tarn_status tarn__disk_free(uint64_t *bytes, const char *folder) {
  struct statvfs info;
  if (statvfs(folder, &info) != 0) return fail_errno("read the free space of", folder);
  *bytes = (uint64_t)info.f_bavail * info.f_frsize;
  return TARN_STATUS_OK;
}

tarn_status tarn__path_join(char path[PATH_MAX], const char *folder, const char *name) {
  const size_t length = strlen(folder);
  const char *slash = length > 0 && folder[length - 1] != '/' ? "/" : "";
  TARN_REQUIRE(snprintf(path, PATH_MAX, "%s%s%s", folder, slash, name) < PATH_MAX, IO, "%.200s: the path is too long",
               folder);
  return TARN_STATUS_OK;
}

static const char *line_of(const char *text, const char *key) {
  for (const char *line = text; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, strlen(key)) == 0) return line;
  }
  return NULL;
}

size_t tarn__file_number(const char *path, const char *key) {
  char *text;
  size_t size;
  if (!tarn__file_exists(path) || tarn__file_read(path, &text, &size) != TARN_STATUS_OK) return 0;
  unsigned long long value = 0;
  const char *at = line_of(text, key);
  if (!at || sscanf(at + strlen(key), " %llu", &value) != 1) value = 0;
  tarn__free(text);
  return (size_t)value;
}

int tarn__file_exists(const char *path) { return access(path, F_OK) == 0; }

// The path without links and dots: of what exists of it, and behind that as text. False if not even a folder above it
// exists, or it is too long.
static bool resolve(char out[PATH_MAX], const char *path) {
  char head[PATH_MAX], tail[PATH_MAX] = "", longer[PATH_MAX];
  if (realpath(path, out)) return true;
  if (snprintf(head, sizeof head, "%s", path) >= (int)sizeof head) return false;
  for (;;) {
    char *slash = strrchr(head, '/');
    const char *part = slash ? slash + 1 : head;
    if (strcmp(part, "..") == 0) return false;
    if (*part && strcmp(part, ".") != 0) {
      if (snprintf(longer, sizeof longer, "/%s%s", part, tail) >= (int)sizeof longer) return false;
      memcpy(tail, longer, sizeof tail);
    }
    if (slash)
      *slash = '\0';
    else
      strcpy(head, ".");
    if (!realpath(slash == head ? "/" : head, out)) {
      if (!slash || slash == head) return false;
      continue;
    }
    const size_t length = strcmp(out, "/") == 0 ? 0 : strlen(out);
    return snprintf(out + length, PATH_MAX - length, "%s", tail) < (int)(PATH_MAX - length);
  }
}

bool tarn__file_same(const char *a, const char *b) {
  char x[PATH_MAX];
  char y[PATH_MAX];
  return strcmp(a, b) == 0 || (resolve(x, a) && resolve(y, b) && strcmp(x, y) == 0);
}

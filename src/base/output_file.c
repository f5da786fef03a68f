#include "tarn/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/temporary.h"

enum { MOST_LINKS = 40 };  // as many as Linux follows

struct tarn_output_file {
  FILE *file;
  char *path;       // as given, for messages
  char *target;     // with links resolved
  char *temporary;  // NULL if written directly
  int lock;         // of the temporary file (base/temporary.h); -1 without one
};

static tarn_status fail_write(const char *path) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
}

// Whether a folder is that of this process's open descriptors, by any path: /dev/fd, /proc/self/fd,
// /proc/thread-self/fd, /proc/PID/fd.
static bool holds_descriptors(const char *folder) {
  char whole[PATH_MAX], own[64];
  if (!realpath(folder, whole)) return false;
  snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
  if (strcmp(whole, own) == 0) return true;
  const size_t length = (size_t)snprintf(own, sizeof own, "/proc/%ld/task/", (long)getpid());
  return strncmp(whole, own, length) == 0 && strcmp(whole + length + strspn(whole + length, "0123456789"), "/fd") == 0;
}

// The open descriptor that a path names, or -1. Opening its link in /proc would restart it from the beginning, and a
// rename would replace it by another file.
static int descriptor_of(const char *path) {
  char folder[PATH_MAX];
  if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  if (!*name || strspn(name, "0123456789") != strlen(name)) return -1;
  errno = 0;
  const long number = strtol(name, NULL, 10);
  if (number > INT_MAX || errno != 0) return -1;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  return holds_descriptors(folder) ? (int)number : -1;
}

// Replaces a link by its target, which need not exist. False: it is no link.
static bool follow(char path[PATH_MAX]) {
  char text[PATH_MAX], whole[PATH_MAX];
  const ssize_t length = readlink(path, text, sizeof text - 1);
  if (length < 0) return false;
  text[length] = '\0';
  const char *slash = strrchr(path, '/');
  const int folder = text[0] == '/' || !slash ? 0 : (int)(slash - path) + 1;
  if (snprintf(whole, sizeof whole, "%.*s%s", folder, path, text) >= (int)sizeof whole) return false;
  memcpy(path, whole, sizeof whole);
  return true;
}

// Takes over the descriptor, even on failure.
static tarn_status open_stream(tarn_output_file *w, int fd) {
  w->file = fdopen(fd, "wb");
  if (w->file) return TARN_STATUS_OK;
  tarn_status status = fail_write(w->path);
  close(fd);
  return status;
}

static tarn_status open_descriptor(tarn_output_file *w, int descriptor) {
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? fail_write(w->path) : open_stream(w, copy);
}

// The file, and a second descriptor that holds its lock until it has its final name.
static tarn_status open_temporary(tarn_output_file *w, int *fd, const char *target, mode_t mode) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, PATH_MAX, 1));
  char *path = memory;
  tarn__temporary_clean(target);
  *fd = tarn__temporary_make(path, target, mode);
  if (*fd >= 0) {
    w->temporary = path;
    w->lock = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
    if (w->lock >= 0) return TARN_STATUS_OK;
    tarn_status status = fail_write(w->path);
    close(*fd);
    return status;
  }
  tarn_status status =
      errno == EEXIST
          ? tarn__fail(TARN_STATUS_IO, "%s: cannot write: too many temporary files are in the way, the last is %s",
                       w->path, path)
          : fail_write(w->path);
  tarn__free(path);
  return status;
}

static tarn_status open_target(tarn_output_file *w, const char *target) {
  struct stat info;
  int fd;
  const bool exists = stat(target, &info) == 0;
  TARN_REQUIRE(!exists || !S_ISDIR(info.st_mode), IO, "%s: cannot write: is a folder", w->path);
  TARN_TRY(tarn__strdup(&w->target, target));
  if (!exists || S_ISREG(info.st_mode)) {
    if (exists && access(target, W_OK) != 0) return fail_write(w->path);
    TARN_TRY(open_temporary(w, &fd, target, exists ? info.st_mode & 0777 : 0666));
    // A file system without permissions has none to keep.
    if (exists) (void)!fchmod(fd, info.st_mode & 07777);
  } else {
    // A device such as /dev/null or a pipe must not be replaced by a rename.
    fd = open(target, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return fail_write(w->path);
  }
  return open_stream(w, fd);
}

static tarn_status start(tarn_output_file *w, const char *path) {
  char target[PATH_MAX];
  TARN_TRY(tarn__strdup(&w->path, path));
  if (!*path) {
    errno = ENOENT;
    return fail_write(path);
  }
  TARN_REQUIRE(snprintf(target, sizeof target, "%s", path) < (int)sizeof target, IO, "%s: the path is too long", path);
  for (int i = 0; i <= MOST_LINKS; i++) {
    const int descriptor = descriptor_of(target);
    if (descriptor >= 0) return open_descriptor(w, descriptor);
    if (!follow(target)) return open_target(w, target);
  }
  errno = ELOOP;
  return fail_write(path);
}

tarn_status tarn_output_file_open(tarn_output_file **output, const char *path) {
  *output = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_output_file)));
  tarn_output_file *w = memory;
  w->lock = -1;
  tarn_status status = start(w, path);
  if (status != TARN_STATUS_OK) {
    tarn_output_file_abort(&w);
    return status;
  }
  *output = w;
  return TARN_STATUS_OK;
}

FILE *tarn_output_file_stream(tarn_output_file *output) { return output->file; }

const char *tarn_output_file_temporary(const tarn_output_file *output) { return output->temporary; }

void tarn__sync_folder_of(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash)
    *(slash == folder ? slash + 1 : slash) = '\0';
  else
    snprintf(folder, sizeof folder, ".");
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

static void release(tarn_output_file **output) {
  if ((*output)->lock >= 0) close((*output)->lock);
  tarn__free((*output)->path);
  tarn__free((*output)->target);
  tarn__free((*output)->temporary);
  tarn__free(*output);
  *output = NULL;
}

tarn_status tarn_output_file_commit(tarn_output_file **output) {
  tarn_output_file *w = *output;
  tarn_status status = ferror(w->file) ? fail_write(w->path) : TARN_STATUS_OK;
  // A target that is written directly, such as a pipe, need not support fsync.
  if ((fflush(w->file) != 0 || (fsync(fileno(w->file)) != 0 && w->temporary)) && status == TARN_STATUS_OK)
    status = fail_write(w->path);
  if (fclose(w->file) != 0 && status == TARN_STATUS_OK) status = fail_write(w->path);
  w->file = NULL;
  if (status == TARN_STATUS_OK && w->temporary && rename(w->temporary, w->target) != 0) status = fail_write(w->path);
  if (status != TARN_STATUS_OK) {
    tarn_output_file_abort(output);
    return status;
  }
  if (w->temporary) tarn__sync_folder_of(w->target);
  release(output);
  return TARN_STATUS_OK;
}

void tarn_output_file_abort(tarn_output_file **output) {
  tarn_output_file *w = *output;
  if (!w) return;
  if (w->file) {
    __fpurge(w->file);  // otherwise closing would write it, without a temporary file even to the target
    fclose(w->file);
  }
  if (w->temporary) unlink(w->temporary);
  release(output);
}

tarn_status tarn__writer_put(tarn__writer *writer, const void *data, size_t size) {
  if (size && fwrite(data, 1, size, writer->file) != size) return fail_write(writer->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__writer_open(tarn__writer **writer, const char *path) { return tarn_output_file_open(writer, path); }
tarn_status tarn__writer_commit(tarn__writer **writer) { return tarn_output_file_commit(writer); }
void tarn__writer_abort(tarn__writer **writer) { tarn_output_file_abort(writer); }

#include "tarn/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { MOST_LINKS = 40 };  // as many as Linux follows

struct tarn_output_file {
  FILE *file;
  char *path;       // as given, for messages
  char *target;     // with links resolved
  char *temporary;  // NULL for what is written directly
};

static tarn_status fail_write(const char *path) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
}

// The open descriptor that a path names, or -1. Through its link in /proc it could only be opened anew, from the
// beginning, and a rename would put another file in its place.
static int descriptor_of(const char *path) {
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const size_t length = strlen(folders[i]);
    char *end;
    if (strncmp(path, folders[i], length) != 0) continue;
    errno = 0;
    const long number = strtol(path + length, &end, 10);
    if (end > path + length && !*end && number >= 0 && number <= INT_MAX && errno == 0) return (int)number;
  }
  return -1;
}

// Replaces a link by what it points to, which need not exist. False: it is no link.
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

static tarn_status open_descriptor(tarn_output_file *w, int descriptor) {
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_write(w->path);
  w->file = fdopen(copy, "wb");
  if (w->file) return TARN_STATUS_OK;
  close(copy);
  return fail_write(w->path);
}

static tarn_status open_target(tarn_output_file *w, const char *target) {
  struct stat info;
  const bool exists = stat(target, &info) == 0;
  TARN_REQUIRE(!exists || !S_ISDIR(info.st_mode), IO, "%s: cannot write: is a folder", w->path);
  // A device such as /dev/null or a pipe cannot be replaced by a rename, and must not be.
  if (!exists || S_ISREG(info.st_mode)) {
    char name[PATH_MAX + 32];
    if (exists && access(target, W_OK) != 0) return fail_write(w->path);
    snprintf(name, sizeof name, "%s.tmp.%ld", target, (long)getpid());
    TARN_TRY(tarn__strdup(&w->temporary, name));
  }
  TARN_TRY(tarn__strdup(&w->target, target));
  w->file = fopen(w->temporary ? w->temporary : w->target, "wbe");
  if (!w->file) return fail_write(w->path);
  // A file system without permissions has none to keep.
  if (exists && w->temporary) (void)!fchmod(fileno(w->file), info.st_mode & 07777);
  return TARN_STATUS_OK;
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

// After a rename the folder must reach the disk too, or a power cut can bring the old name back.
static void sync_folder(const char *path) {
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
  tarn__free((*output)->path);
  tarn__free((*output)->target);
  tarn__free((*output)->temporary);
  tarn__free(*output);
  *output = NULL;
}

tarn_status tarn_output_file_commit(tarn_output_file **output) {
  tarn_output_file *w = *output;
  tarn_status status = ferror(w->file) ? fail_write(w->path) : TARN_STATUS_OK;
  // What is written directly, as a pipe, need not know fsync.
  if ((fflush(w->file) != 0 || (fsync(fileno(w->file)) != 0 && w->temporary)) && status == TARN_STATUS_OK)
    status = fail_write(w->path);
  if (fclose(w->file) != 0 && status == TARN_STATUS_OK) status = fail_write(w->path);
  w->file = NULL;
  if (status == TARN_STATUS_OK && w->temporary && rename(w->temporary, w->target) != 0) status = fail_write(w->path);
  if (status != TARN_STATUS_OK) {
    tarn_output_file_abort(output);
    return status;
  }
  if (w->temporary) sync_folder(w->target);
  release(output);
  return TARN_STATUS_OK;
}

void tarn_output_file_abort(tarn_output_file **output) {
  tarn_output_file *w = *output;
  if (!w) return;
  if (w->file) fclose(w->file);
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

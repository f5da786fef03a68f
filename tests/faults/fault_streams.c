// Streams of C. Inside the C library they call read() and write() where nothing can be put before them, so the streams
// of a command are made of the library's own functions, which do what glibc's do.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault_core.h"

enum { MOST_STREAMS = 256 };

static struct {
  FILE *file;
  int fd;
} streams[MOST_STREAMS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// A cookie is the descriptor itself.
static int fd_of(void *cookie) { return (int)(intptr_t)cookie; }

static ssize_t stream_read(void *cookie, char *data, size_t size) { return fault_read(fd_of(cookie), data, size); }

// As glibc's: a part that was written is followed by the rest, a failure ends it.
static ssize_t stream_write(void *cookie, const char *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t now = fault_write(fd_of(cookie), data + done, size - done);
    if (now < 0) break;
    done += (size_t)now;
  }
  return (ssize_t)done;
}

static int stream_seek(void *cookie, off64_t *offset, int whence) {
  off_t at = lseek(fd_of(cookie), *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}

static int stream_close(void *cookie) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_STREAMS; i++)
    if (streams[i].file && streams[i].fd == fd_of(cookie)) streams[i].file = NULL;
  pthread_mutex_unlock(&lock);
  return (int)syscall(SYS_close, fd_of(cookie));
}

static FILE *make(int fd, const char *mode) {
  const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
  FILE *file = fopencookie((void *)(intptr_t)fd, mode, functions);
  pthread_mutex_lock(&lock);
  for (int i = 0; file && i < MOST_STREAMS; i++) {
    if (streams[i].file) continue;
    streams[i].file = file;
    streams[i].fd = fd;
    break;
  }
  pthread_mutex_unlock(&lock);
  return file;
}

static int flags_of(const char *mode) {
  int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
  if (strchr(mode, '+')) flags = (flags & ~(O_RDONLY | O_WRONLY)) | O_RDWR;
  if (strchr(mode, 'x')) flags |= O_EXCL;
  return strchr(mode, 'e') ? flags | O_CLOEXEC : flags;
}

static FILE *open_stream(const char *path, const char *mode) {
  int fd = fault_open(AT_FDCWD, path, flags_of(mode), 0666);
  if (fd < 0) return NULL;
  FILE *file = make(fd, mode);
  if (!file) {
    int error = errno;
    syscall(SYS_close, fd);
    errno = error;
  }
  return file;
}

FAULT_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode) { return open_stream(path, mode); }
FAULT_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode) { return open_stream(path, mode); }
FAULT_EXPORT FILE *fdopen(int fd, const char *mode) { return make(fd, mode); }

FAULT_EXPORT int fileno(FILE *file) {
  int fd = -1;
  pthread_mutex_lock(&lock);
  for (int i = 0; fd < 0 && i < MOST_STREAMS; i++)
    if (streams[i].file == file) fd = streams[i].fd;
  pthread_mutex_unlock(&lock);
  return fd >= 0 ? fd : FAULT_NEXT(fileno)(file);
}

FAULT_EXPORT int fileno_unlocked(FILE *file) { return fileno(file); }

void fault_streams_start(void) {
  FILE *file = make(STDOUT_FILENO, "w");
  if (file) stdout = file;
  file = make(STDIN_FILENO, "r");
  if (file) stdin = file;
}

// The calls that the library puts itself before: descriptors, names, maps, threads, processes, and the clock, which
// stands still so that two runs write the same bytes.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault_core.h"

// Fails the calling function where the order says so.
#define MEET(kind, result)         \
  do {                             \
    int error = fault_meets(kind); \
    if (error) {                   \
      errno = error;               \
      return result;               \
    }                              \
  } while (0)

// --- descriptors
// ------------------------------------------------------------------------------------------------------

int fault_open(int at, const char *path, int flags, mode_t mode) {
  MEET(FAULT_OPEN, -1);
  struct stat info;
  bool existed = fault_is_recorded() && fstatat(at, path, &info, 0) == 0;
  int fd = (int)syscall(SYS_openat, at, path, flags, mode);
  if (fd < 0 || !fault_is_recorded()) return fd;
  if (!existed && (flags & O_CREAT)) fault_note_created(fd, at, path);
  if (existed && (flags & O_TRUNC)) fault_note_file(FAULT_TRUNCATE, fd, 0, NULL, 0);
  return fd;
}

#define MODE_OF(flags)                            \
  mode_t mode = 0;                                \
  if ((flags)&O_CREAT || ((flags)&__O_TMPFILE)) { \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    mode = va_arg(arguments, mode_t);             \
    va_end(arguments);                            \
  }

FAULT_EXPORT int open(const char *path, int flags, ...) {
  MODE_OF(flags)
  return fault_open(AT_FDCWD, path, flags, mode);
}

FAULT_EXPORT int open64(const char *path, int flags, ...) {
  MODE_OF(flags)
  return fault_open(AT_FDCWD, path, flags, mode);
}

FAULT_EXPORT int openat(int at, const char *path, int flags, ...) {
  MODE_OF(flags)
  return fault_open(at, path, flags, mode);
}

FAULT_EXPORT int openat64(int at, const char *path, int flags, ...) {
  MODE_OF(flags)
  return fault_open(at, path, flags, mode);
}

FAULT_EXPORT int __open_2(const char *path, int flags);
FAULT_EXPORT int __open_2(const char *path, int flags) { return fault_open(AT_FDCWD, path, flags, 0); }
FAULT_EXPORT int __open64_2(const char *path, int flags);
FAULT_EXPORT int __open64_2(const char *path, int flags) { return fault_open(AT_FDCWD, path, flags, 0); }

FAULT_EXPORT DIR *opendir(const char *path) {
  MEET(FAULT_OPEN, NULL);
  return FAULT_NEXT(opendir)(path);
}

FAULT_EXPORT int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *found) {
  if (fault_meets(FAULT_OPEN)) return GLOB_ABORTED;
  return FAULT_NEXT(glob)(pattern, flags, on_error, found);
}

FAULT_EXPORT int dup(int fd) {
  MEET(FAULT_OPEN, -1);
  return (int)syscall(SYS_dup, fd);
}

// --- bytes
// ------------------------------------------------------------------------------------------------------------

ssize_t fault_read(int fd, void *data, size_t size) {
  MEET(FAULT_READ, -1);
  return syscall(SYS_read, fd, data, fault_part(size));
}

static uint64_t write_offset(int fd) {
  struct stat info;
  if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
  off_t at = lseek(fd, 0, SEEK_CUR);
  return at < 0 ? 0 : (uint64_t)at;
}

static ssize_t write_at(int fd, const void *data, size_t size, off_t at) {
  MEET(FAULT_WRITE, -1);
  size = fault_part(size);
  uint64_t offset = at >= 0 ? (uint64_t)at : fault_is_recorded() ? write_offset(fd) : 0;
  ssize_t done = at >= 0 ? syscall(SYS_pwrite64, fd, data, size, at) : syscall(SYS_write, fd, data, size);
  if (done > 0 && fault_is_recorded()) fault_note_file(FAULT_WRITE_AT, fd, offset, data, (size_t)done);
  return done;
}

ssize_t fault_write(int fd, const void *data, size_t size) { return write_at(fd, data, size, -1); }

static ssize_t read_at(int fd, void *data, size_t size, off_t at) {
  MEET(FAULT_READ, -1);
  return syscall(SYS_pread64, fd, data, fault_part(size), at);
}

FAULT_EXPORT ssize_t read(int fd, void *data, size_t size) { return fault_read(fd, data, size); }
FAULT_EXPORT ssize_t write(int fd, const void *data, size_t size) { return fault_write(fd, data, size); }
FAULT_EXPORT ssize_t pread(int fd, void *data, size_t size, off_t at) { return read_at(fd, data, size, at); }
FAULT_EXPORT ssize_t pread64(int fd, void *data, size_t size, off_t at) { return read_at(fd, data, size, at); }
FAULT_EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return write_at(fd, data, size, at); }
FAULT_EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return write_at(fd, data, size, at); }

FAULT_EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
FAULT_EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room) {
  (void)room;
  return fault_read(fd, data, size);
}
FAULT_EXPORT ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room);
FAULT_EXPORT ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room) {
  (void)room;
  return read_at(fd, data, size, at);
}

static int sync_file(int fd) {
  MEET(FAULT_SYNC, -1);
  // No power is lost but in the journal, so the disk is spared.
  if (fcntl(fd, F_GETFD) < 0) return -1;
  if (fault_is_recorded()) fault_note_file(FAULT_SYNC_FILE, fd, 0, NULL, 0);
  return 0;
}

FAULT_EXPORT int fsync(int fd) { return sync_file(fd); }
FAULT_EXPORT int fdatasync(int fd) { return sync_file(fd); }

// LLVM's OpenMP resizes a file in memory that it maps, and does not look whether it could.
static int resize(const void *caller, int fd, off_t size) {
  if (fault_is_own(caller)) MEET(FAULT_WRITE, -1);
  int result = (int)syscall(SYS_ftruncate, fd, size);
  if (result == 0 && fault_is_recorded()) fault_note_file(FAULT_TRUNCATE, fd, (uint64_t)size, NULL, 0);
  return result;
}

FAULT_EXPORT int ftruncate(int fd, off_t size) { return resize(__builtin_return_address(0), fd, size); }
FAULT_EXPORT int ftruncate64(int fd, off_t size) { return resize(__builtin_return_address(0), fd, size); }

// --- names
// ------------------------------------------------------------------------------------------------------------

static int move(int at, const char *from, int to_at, const char *to) {
  MEET(FAULT_RENAME, -1);
  int result = (int)syscall(SYS_renameat, at, from, to_at, to);
  if (result == 0 && fault_is_recorded()) fault_note_name(FAULT_MOVE, at, from, to_at, to);
  return result;
}

FAULT_EXPORT int rename(const char *from, const char *to) { return move(AT_FDCWD, from, AT_FDCWD, to); }
FAULT_EXPORT int renameat(int at, const char *from, int to_at, const char *to) { return move(at, from, to_at, to); }

static int drop(int at, const char *path, int flags) {
  MEET(FAULT_REMOVE, -1);
  int result = (int)syscall(SYS_unlinkat, at, path, flags);
  if (result == 0 && fault_is_recorded()) fault_note_name(FAULT_UNLINK, at, path, 0, NULL);
  return result;
}

FAULT_EXPORT int unlink(const char *path) { return drop(AT_FDCWD, path, 0); }
FAULT_EXPORT int unlinkat(int at, const char *path, int flags) { return drop(at, path, flags); }
FAULT_EXPORT int rmdir(const char *path) { return drop(AT_FDCWD, path, AT_REMOVEDIR); }

FAULT_EXPORT int mkdir(const char *path, mode_t mode) {
  MEET(FAULT_FOLDER, -1);
  int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (result == 0 && fault_is_recorded()) fault_note_name(FAULT_MAKE_FOLDER, AT_FDCWD, path, 0, NULL);
  return result;
}

// Counted with the folders: it makes a name too.
FAULT_EXPORT int symlink(const char *target, const char *path) {
  MEET(FAULT_FOLDER, -1);
  int result = (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
  if (result == 0 && fault_is_recorded()) fault_note_name(FAULT_MAKE_LINK, AT_FDCWD, path, AT_FDCWD, target);
  return result;
}

// --- maps and threads
// -------------------------------------------------------------------------------------------------

static void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  // What the C library takes for itself is no map that the command asks for.
  if (!(flags & MAP_ANONYMOUS)) MEET(FAULT_MAP, MAP_FAILED);
  return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

FAULT_EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  return map(at, size, protection, flags, fd, offset);
}

FAULT_EXPORT void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  return map(at, size, protection, flags, fd, offset);
}

FAULT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                                void *user) {
  if (fault_is_own(__builtin_return_address(0)) && fault_meets(FAULT_THREAD)) return EAGAIN;
  return FAULT_NEXT(pthread_create)(thread, attributes, work, user);
}

// The thread sanitizer and the address sanitizer ask where a new thread's stack is, and end the process where the C
// library gets no memory to answer them. tarn itself never asks.
FAULT_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
  fault_inside++;
  const int error = FAULT_NEXT(pthread_getattr_np)(thread, attributes);
  fault_inside--;
  return error;
}

// --- processes
// ----------------------------------------------------------------------------------------------------

// A failure is as where SIGCHLD is ignored: the process has ended, and how it ended is lost. Calls that find it running
// are not counted.
FAULT_EXPORT pid_t waitpid(pid_t pid, int *how, int options) {
  int own = 0;
  const pid_t ended = (pid_t)syscall(SYS_wait4, pid, &own, options, NULL);
  if (ended <= 0) return ended;
  MEET(FAULT_WAIT, -1);
  if (how) *how = own;
  return ended;
}

// --- the clock
// --------------------------------------------------------------------------------------------------------

enum { THE_TIME = 1700000000 };

FAULT_EXPORT int clock_gettime(clockid_t clock, struct timespec *now) {
  (void)clock;
  *now = (struct timespec){.tv_sec = THE_TIME};
  return 0;
}

// Who waits for others looks again soon.
FAULT_EXPORT int nanosleep(const struct timespec *time_to_wait, struct timespec *left) {
  const struct timespec soon = {.tv_nsec = 2000000};
  (void)time_to_wait;
  return (int)syscall(SYS_nanosleep, &soon, left);
}

FAULT_EXPORT time_t time(time_t *now) {
  if (now) *now = THE_TIME;
  return THE_TIME;
}

FAULT_EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  *now = (struct timeval){.tv_sec = THE_TIME};
  return 0;
}

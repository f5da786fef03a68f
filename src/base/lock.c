// Locks of folders: flock(), and a claim on file systems that other machines may share.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/claim.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/write_all.h"

// The claims of held locks, by their descriptors.
typedef struct held {
  struct held *next;
  tarn__claim *claim;
  int fd;
} held;
static held *all;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static held *find(int fd) {
  held *h = all;
  while (h && h->fd != fd) h = h->next;
  return h;
}

static tarn_status fail_errno(const char *action, const char *path) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static tarn_status fail_busy(int fd, const char *path) {
  char holder[32] = "";
  ssize_t got = pread(fd, holder, sizeof holder - 1, 0);
  long number = got > 0 ? strtol(holder, NULL, 10) : 0;
  if (number > 0)
    return tarn__fail(TARN_STATUS_BUSY, "%s: another process (%ld) uses this run directory", path, number);
  return tarn__fail(TARN_STATUS_BUSY, "%s: another process uses this run directory", path);
}

// A shared file system may have no such locks: then the claim must suffice.
static tarn_status take_flock(int fd, const char *path, bool shared) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return TARN_STATUS_OK;
  if (errno == EWOULDBLOCK) return fail_busy(fd, path);
  if (shared && (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK)) return TARN_STATUS_OK;
  return fail_errno("lock", path);
}

static tarn_status claim(int fd, const char *path) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(held)));
  held *h = memory;
  *h = (held){.fd = fd};
  tarn_status status = tarn__claim_take(&h->claim, path);
  if (status != TARN_STATUS_OK) {
    tarn__free(h);
    return status;
  }
  pthread_mutex_lock(&guard);
  h->next = all;
  all = h;
  pthread_mutex_unlock(&guard);
  return TARN_STATUS_OK;
}

tarn_status tarn__lock(int *fd, const char *path) {
  *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*fd < 0) return fail_errno("lock", path);
  const bool shared = tarn__claim_needed(*fd);
  tarn_status status = take_flock(*fd, path, shared);
  if (status == TARN_STATUS_OK && shared) status = claim(*fd, path);
  char self[32];
  int length = snprintf(self, sizeof self, "%ld", (long)getpid());
  if (status == TARN_STATUS_OK && (ftruncate(*fd, 0) != 0 || !tarn__write_all(*fd, self, (size_t)length)))
    status = fail_errno("write", path);
  if (status != TARN_STATUS_OK) tarn__unlock(fd);
  return status;
}

void tarn__unlock(int *fd) {
  if (*fd < 0) return;
  pthread_mutex_lock(&guard);
  held **place = &all;
  while (*place && (*place)->fd != *fd) place = &(*place)->next;
  held *h = *place;
  if (h) *place = h->next;
  pthread_mutex_unlock(&guard);
  if (h) tarn__claim_drop(&h->claim);
  tarn__free(h);
  close(*fd);
  *fd = -1;
}

tarn_status tarn__lock_check(int fd) {
  if (fd < 0) return TARN_STATUS_OK;
  pthread_mutex_lock(&guard);
  const held *h = find(fd);
  pthread_mutex_unlock(&guard);
  return h ? tarn__claim_check(h->claim) : TARN_STATUS_OK;
}

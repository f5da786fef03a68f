#include "base/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/temporary.h"
#include "base/write_all.h"

tarn__claim_times tarn__claim_seconds = {.beat = 10, .stale = 60, .settle = 1};

const char *tarn__claim_boot = "/proc/sys/kernel/random/boot_id";

enum { LINE = 512, TRIES = 10 };

// The owner of a claim.
typedef struct identity {
  char boot[64], space[64], host[128];
  long process;
  unsigned long long start;
} identity;

struct tarn__claim {
  char path[PATH_MAX];
  int fd;  // of the linked file
  pthread_t thread;
  bool beats;  // the renewing thread exists
  pthread_mutex_t lock;
  pthread_cond_t wake;
  // Under the lock:
  bool over, lost;
  double beat_at;
};

bool tarn__claim_needed(int fd) {
  // ext2 to ext4, xfs, btrfs, tmpfs, ramfs, overlay, f2fs, zfs, bcachefs, jfs, reiserfs, nilfs, exfat, vfat, ntfs
  static const unsigned local[] = {0xef53,     0x58465342, 0x9123683e, 0x01021994, 0x858458f6,
                                   0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x3153464a,
                                   0x52654973, 0x3434,     0x2011bab0, 0x4d44,     0x5346544e};
  const char *wanted = getenv("TARN_FILE_SYSTEM");
  struct statfs info;
  if (wanted && strcmp(wanted, "local") == 0) return false;
  if (wanted && strcmp(wanted, "shared") == 0) return true;
  if (fstatfs(fd, &info) != 0) return true;
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if ((unsigned)info.f_type == local[i]) return false;
  return true;
}

// A clock that also advances while the machine sleeps.
static double clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void first_word(char *text, size_t size, const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
  if (fd >= 0) close(fd);
  text[got > 0 ? got : 0] = '\0';
  text[strcspn(text, " \t\n")] = '\0';
  if (!*text) snprintf(text, size, "-");
}

// The start time of a process in ticks since boot; 0: it has ended; 1: it is hidden from us, because /proc is mounted
// with hidepid or missing. Its name may contain anything, even spaces and brackets, so fields are counted from the last
// bracket: the 22nd field is the 20th after it.
enum { ENDED = 0, HIDDEN = 1 };
static unsigned long long start_of(long process) {
  char path[64], text[1024];
  unsigned long long start = HIDDEN;
  snprintf(path, sizeof path, "/proc/%ld/stat", process);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) close(fd);
  if (got <= 0) return process <= 0 || (kill((pid_t)process, 0) != 0 && errno == ESRCH) ? ENDED : HIDDEN;
  text[got] = '\0';
  const char *at = strrchr(text, ')');
  if (!at || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X') return ENDED;
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  if (at) start = strtoull(at + 1, NULL, 10);
  return at && start <= HIDDEN ? HIDDEN + 1 : start;
}

static void own_identity(identity *self) {
  *self = (identity){.process = (long)getpid()};
  first_word(self->boot, sizeof self->boot, tarn__claim_boot);
  const ssize_t length = readlink("/proc/self/ns/pid", self->space, sizeof self->space - 1);
  if (length <= 0) snprintf(self->space, sizeof self->space, "-");
  if (gethostname(self->host, sizeof self->host - 1) != 0 || !*self->host) snprintf(self->host, sizeof self->host, "-");
  self->start = start_of(self->process);
}

// False: it is incomplete, for example after a crash of the machine.
static bool read_identity(identity *other, int fd) {
  char line[LINE];
  *other = (identity){0};
  const ssize_t got = pread(fd, line, sizeof line - 1, 0);
  if (got <= 0) return false;
  line[got] = '\0';
  return sscanf(line, "%63s %63s %ld %llu %127s", other->boot, other->space, &other->process, &other->start,
                other->host) == 5;
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static double seconds_between(const struct stat *before, const struct stat *after) {
  return (double)(after->st_mtim.tv_sec - before->st_mtim.tv_sec) +
         1e-9 * (double)(after->st_mtim.tv_nsec - before->st_mtim.tv_nsec);
}

// A claim that is given up names nobody any more, even where it cannot be removed: its process may live on.
static const char released[] = "released\n";
static void release(int fd) {
  if (ftruncate(fd, 0) == 0 && pwrite(fd, released, sizeof released - 1, 0) > 0) (void)fsync(fd);
}

static bool is_released(int fd) {
  char text[sizeof released] = "";
  return pread(fd, text, sizeof text - 1, 0) == sizeof text - 1 && strcmp(text, released) == 0;
}

// Whether the path still names this file; the file is opened, because NFS then asks the server.
typedef enum place { HERE, GONE, UNKNOWN } place;
static place look(const char *path, int own) {
  struct stat mine, there;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const bool closed = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EACCES);
  const bool known = fd >= 0 ? fstat(fd, &there) == 0 : closed && stat(path, &there) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!known) return error == ENOENT ? GONE : UNKNOWN;
  if (fstat(own, &mine) != 0) return errno == ESTALE ? GONE : UNKNOWN;
  return same_file(&mine, &there) ? HERE : GONE;
}

// A value that could not be read is "-" and proves nothing.
static bool same_word(const char *a, const char *b) { return strcmp(a, b) == 0 && strcmp(a, "-") != 0; }

// Whether the claim of an open file is valid, compared with a file made now.
static bool is_alive(identity *holder, int fd, const struct stat *info, const struct stat *now) {
  identity self;
  if (is_released(fd)) return false;
  own_identity(&self);
  if (read_identity(holder, fd) && same_word(holder->boot, self.boot) && same_word(holder->space, self.space)) {
    const unsigned long long start = start_of(holder->process);
    if (start == ENDED) return false;
    // If a start time is unknown, another process may have got the number.
    if (start != HIDDEN && holder->start > HIDDEN) return start == holder->start;
  }
  return seconds_between(info, now) <= tarn__claim_seconds.stale;
}

static bool write_identity(int fd) {
  char line[LINE];
  identity self;
  own_identity(&self);
  const int length =
      snprintf(line, sizeof line, "%s %s %ld %llu %s\n", self.boot, self.space, self.process, self.start, self.host);
  // Other users must be able to judge it, whatever the umask.
  return fchmod(fd, 0644) == 0 && tarn__write_all(fd, line, (size_t)length) && fsync(fd) == 0;
}

// Puts the file `own`, open as *fd, at a path too. False, with EEXIST: there is one already.
static bool put_there(int *fd, const char *own, const char *path) {
  if (link(own, path) == 0) return true;
  // If the server's answer is lost, the kernel repeats the call, which then fails although the first one succeeded.
  if (errno == EEXIST) {
    if (look(path, *fd) == HERE) return true;
    errno = EEXIST;
    return false;
  }
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return false;
  // FUSE and SMB may have no links: then the file is created in place and is incomplete for a moment. A reader takes it
  // for another machine's until then.
  const int there = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (there < 0) return false;
  if (!write_identity(there)) {
    const int error = errno;
    unlink(path);
    close(there);
    errno = error;
    return false;
  }
  close(*fd);
  *fd = there;
  return true;
}

// What is at a path.
typedef enum finding { NOTHING, ALIVE, DEAD } finding;
static tarn_status find(finding *found, identity *holder, const char *path, const char *own, int fd) {
  struct stat mine, there;
  *found = NOTHING;
  TARN_REQUIRE(futimens(fd, NULL) == 0 && fstat(fd, &mine) == 0, IO, "%s: cannot write: %s", own, strerror(errno));
  const int other = open(path, O_RDONLY | O_CLOEXEC);
  const bool known = other >= 0 && fstat(other, &there) == 0;
  const int error = errno;
  if (known) *found = is_alive(holder, other, &there, &mine) ? ALIVE : DEAD;
  if (other >= 0) close(other);
  if (other < 0 && error == EACCES && stat(path, &there) == 0) {  // of another program: only its time is known
    *found = seconds_between(&there, &mine) <= tarn__claim_seconds.stale ? ALIVE : DEAD;
    return TARN_STATUS_OK;
  }
  // It may just have disappeared.
  TARN_REQUIRE(known || error == ENOENT || error == ESTALE, IO, "%s: cannot read: %s", path, strerror(error));
  return TARN_STATUS_OK;
}

static tarn_status busy(const char *path, const identity *holder) {
  return tarn__fail(TARN_STATUS_BUSY, "%s: another process (%ld on %s) uses this run directory", path, holder->process,
                    *holder->host ? holder->host : "?");
}

// Moves our file from `taking` to the claim's path, if the claim there is dead. The move uses the right up: a process
// that lost it in the meantime finds nothing to move, or moves the file of the one that has it.
static tarn_status replace(const tarn__claim *claim, const char *own, const char *taking) {
  finding found;
  identity holder = {0};
  TARN_TRY(find(&found, &holder, claim->path, own, claim->fd));
  if (found == ALIVE) return busy(claim->path, &holder);
  if (found == NOTHING || rename(taking, claim->path) == 0) return TARN_STATUS_OK;
  // Some servers refuse to replace a file that another process has open.
  TARN_REQUIRE(errno == ENOENT || errno == EACCES || errno == EBUSY || errno == ETXTBSY, IO, "%s: cannot replace: %s",
               claim->path, strerror(errno));
  return TARN_STATUS_OK;
}

// Ends a process's right to take over, whose file is open as `right`. Whatever was done and failed before, the claim is
// this process's if the file is at its path: after the removal nobody can move it there any more.
static void end_right(tarn__claim *claim, const char *taking, int right, tarn_status *status, bool *again) {
  struct stat file, mine;
  unlink(taking);  // which is harmless if it is another process's by now
  if (look(claim->path, right) == HERE) {
    close(claim->fd);
    claim->fd = right;
    *again = false;
    *status = TARN_STATUS_OK;
    return;
  }
  // Without links it is another file than that of the claim.
  if (fstat(right, &file) == 0 && fstat(claim->fd, &mine) == 0 && !same_file(&file, &mine)) release(right);
  close(right);
}

// Takes over a dead claim. Only the process whose file is at `taking` may do so. *again: the caller should retry.
static tarn_status take_over(tarn__claim *claim, const char *own, const char *taking, bool *again) {
  finding found;
  identity holder = {0};
  int right = fcntl(claim->fd, F_DUPFD_CLOEXEC, 0);
  TARN_REQUIRE(right >= 0, IO, "%s: cannot open: %s", own, strerror(errno));
  *again = true;
  if (put_there(&right, own, taking)) {
    tarn_status status = replace(claim, own, taking);
    end_right(claim, taking, right, &status, again);
    return status;
  }
  const int error = errno;
  close(right);
  TARN_REQUIRE(error == EEXIST, IO, "%s: cannot make: %s", taking, strerror(error));
  TARN_TRY(find(&found, &holder, taking, own, claim->fd));
  if (found == ALIVE) return busy(claim->path, &holder);
  if (found == DEAD) unlink(taking);
  return TARN_STATUS_OK;
}

// One attempt. *linked: there was no claim.
static tarn_status try_claim(tarn__claim *claim, const char *own, const char *taking, bool *again, bool *linked) {
  finding found;
  identity holder = {0};
  *linked = put_there(&claim->fd, own, claim->path);
  *again = !*linked;
  if (*linked) return TARN_STATUS_OK;
  TARN_REQUIRE(errno == EEXIST, IO, "%s: cannot make: %s", claim->path, strerror(errno));
  TARN_TRY(find(&found, &holder, claim->path, own, claim->fd));
  if (found == ALIVE) return busy(claim->path, &holder);
  return found == DEAD ? take_over(claim, own, taking, again) : TARN_STATUS_OK;
}

static void pause_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
  nanosleep(&time, NULL);
}

// A claim counts only if it is still there a moment later, when others have done what they began: another process may
// have had the right to take over for a moment, or NFS have shown no claim while one was replaced.
static tarn_status wait_for_others(const tarn__claim *claim, const char *taking) {
  enum { LOOKS = 3 };
  place found = UNKNOWN;
  for (int i = 0; i < LOOKS && found == UNKNOWN; i++) {
    pause_for(tarn__claim_seconds.settle);
    found = look(claim->path, claim->fd);
  }
  TARN_REQUIRE(found != GONE, BUSY, "%s: another process uses this run directory", claim->path);
  TARN_REQUIRE(found == HERE, IO, "%s: cannot read: %s", claim->path, strerror(errno));
  unlink(taking);
  return TARN_STATUS_OK;
}

static tarn_status link_claim(tarn__claim *claim, const char *own) {
  static const double first_pause = 0.002;
  char taking[PATH_MAX];
  bool again = true, linked = false;
  TARN_REQUIRE(snprintf(taking, sizeof taking, "%s.take", claim->path) < (int)sizeof taking, IO,
               "%.200s: the path is too long", claim->path);
  for (int i = 0; again && i < TRIES; i++) {
    if (i > 0) pause_for(first_pause * (1 << i));
    TARN_TRY(try_claim(claim, own, taking, &again, &linked));
  }
  TARN_REQUIRE(!again, BUSY, "%s: others want it at the same time", claim->path);
  const bool alone = linked && access(taking, F_OK) != 0 && errno == ENOENT;  // nobody takes over
  return alone ? TARN_STATUS_OK : wait_for_others(claim, taking);
}

// Creates the file under a temporary name, which is removed in any case.
static tarn_status make_claim(tarn__claim *claim) {
  char own[PATH_MAX];
  claim->fd = tarn__temporary_make(own, claim->path, 0644);
  TARN_REQUIRE(claim->fd >= 0, IO, "%s: cannot write: %s", claim->path, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  if (!write_identity(claim->fd)) status = tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", own, strerror(errno));
  if (status == TARN_STATUS_OK) status = link_claim(claim, own);
  if (status != TARN_STATUS_OK) release(claim->fd);
  unlink(own);
  return status;
}

// Under the lock of the claim. If it cannot be checked, it is renewed all the same, and checked again later.
static void renew(tarn__claim *claim) {
  const place found = claim->lost ? GONE : look(claim->path, claim->fd);
  claim->lost = found == GONE;
  if (found != GONE && futimens(claim->fd, NULL) == 0 && found == HERE) claim->beat_at = clock_now();
}

static void *beat(void *own) {
  tarn__claim *claim = own;
  pthread_mutex_lock(&claim->lock);
  while (!claim->over) {
    struct timespec until;
    const double seconds = tarn__claim_seconds.beat;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(fmod(seconds, 1.0) * 1e9);
    until.tv_sec += (time_t)seconds + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_cond_timedwait(&claim->wake, &claim->lock, &until) == ETIMEDOUT) renew(claim);
  }
  pthread_mutex_unlock(&claim->lock);
  return NULL;
}

// Signals are left to the program's threads.
static tarn_status start_beats(tarn__claim *claim) {
  sigset_t none, before;
  pthread_condattr_t attributes;
  pthread_mutex_init(&claim->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&claim->wake, &attributes);
  pthread_condattr_destroy(&attributes);
  claim->beat_at = clock_now();
  sigfillset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  const int error = pthread_create(&claim->thread, NULL, beat, claim);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  claim->beats = error == 0;
  TARN_REQUIRE(claim->beats, MEMORY, "%s: cannot start a thread: %s", claim->path, strerror(error));
  return TARN_STATUS_OK;
}

tarn_status tarn__claim_take(tarn__claim **claim, const char *path) {
  void *memory;
  *claim = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **claim));
  tarn__claim *c = memory;
  *c = (tarn__claim){.fd = -1};
  tarn_status status = TARN_STATUS_OK;
  if (snprintf(c->path, sizeof c->path, "%s.holder", path) >= (int)sizeof c->path)
    status = tarn__fail(TARN_STATUS_IO, "%.200s: the path is too long", path);
  if (status == TARN_STATUS_OK) status = make_claim(c);
  if (status != TARN_STATUS_OK) {
    if (c->fd >= 0) close(c->fd);
    tarn__free(c);
    return status;
  }
  *claim = c;
  status = start_beats(c);
  if (status != TARN_STATUS_OK) tarn__claim_drop(claim);
  return status;
}

void tarn__claim_drop(tarn__claim **claim) {
  tarn__claim *c = *claim;
  if (!c) return;
  if (c->beats) {
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
  }
  pthread_cond_destroy(&c->wake);
  pthread_mutex_destroy(&c->lock);
  if (look(c->path, c->fd) == HERE) unlink(c->path);
  release(c->fd);
  close(c->fd);
  tarn__free(c);
  *claim = NULL;
}

tarn_status tarn__claim_check(tarn__claim *claim) {
  pthread_mutex_lock(&claim->lock);
  if (clock_now() - claim->beat_at > tarn__claim_seconds.stale / 2) renew(claim);
  const bool lost = claim->lost;
  pthread_mutex_unlock(&claim->lock);
  TARN_REQUIRE(!lost, BUSY, "%s: this process stood still, and another one has taken the run directory over",
               claim->path);
  return TARN_STATUS_OK;
}

#include "comm/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"

enum { LINE = 1024, GO_ON = 512 };

// The state of a rank.
typedef struct peer {
  tarn__beat newest;
  double silent;  // seconds
  bool left;      // it has closed its communicator
  bool told;      // this rank has announced its leaving to it
  bool dead;      // its process has ended
  bool broken;    // a call of MPI has failed
  bool beats;     // this rank exchanges heartbeats with it
  int slot;       // of its descriptor among the polled ones; -1: it is elsewhere, or has none
} peer;

struct tarn__watch {
  tarn__watch_setup setup;
  pthread_t thread;
  int wake;  // an event: the watch must end
  peer *peers;
  struct pollfd *polled;  // [0]: wake
  int polled_count;
  atomic_llong begun;
  atomic_int waits;
  double waited;       // seconds of this rank in its current call
  long long waits_in;  // the number of that call
  double warn_at;
  pthread_mutex_t lock;  // of go_on
  char go_on[GO_ON];
  char line[LINE];
};

void tarn__member_here(tarn__member *member) {
  struct stat space;
  char boot[64] = "";
  *member = (tarn__member){.pid = getpid()};
  if (gethostname(member->host, sizeof member->host - 1) != 0)
    snprintf(member->host, sizeof member->host, "an unknown host");
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file) {
    const size_t length = fread(boot, 1, sizeof boot - 1, file);
    fclose(file);
    if (length > 0 && stat("/proc/self/ns/pid", &space) == 0) {
      member->place = tarn__hash64(boot, length, (uint64_t)space.st_ino);
      if (member->place == 0) member->place = 1;
    }
  }
}

static bool seen(const tarn__watch *w, int rank) {
  const tarn__member *own = &w->setup.members[w->setup.rank], *other = &w->setup.members[rank];
  return rank != w->setup.rank && own->place != 0 && own->place == other->place;
}

// poll() ignores negative descriptors.
static void pass_over(tarn__watch *w, const peer *p) {
  struct pollfd *polled = &w->polled[p->slot];
  polled->fd = polled->fd < 0 ? polled->fd : ~polled->fd;
  polled->revents = 0;
}

// A process without a descriptor (an old kernel, too many files) is checked by its id.
static bool dead(tarn__watch *w, int rank) {
  peer *p = &w->peers[rank];
  if (!seen(w, rank) || p->left) return false;
  if (p->slot < 0) return kill((pid_t)w->setup.members[rank].pid, 0) != 0 && errno == ESRCH;
  if (w->polled[p->slot].revents == 0) return false;
  pass_over(w, p);
  return true;
}

// The rank that reports a death: the first one on the same machine, or the second if that died. So when a launcher
// kills all the others, none of them reports that.
static bool says_so(const tarn__watch *w, int rank) {
  for (int r = 0; r < w->setup.rank; r++)
    if (r != rank && seen(w, r)) return false;
  return true;
}

static void lose(tarn__watch *w, int rank, bool tell, const char *what) {
  if (atomic_load(w->setup.lost)) return;
  pthread_mutex_lock(&w->lock);
  snprintf(w->line, sizeof w->line, "rank %d on %s %s; this ends all ranks%s%s", rank, w->setup.members[rank].host,
           what, *w->go_on ? ". Go on from what is saved with: " : "", w->go_on);
  pthread_mutex_unlock(&w->lock);
  if (tell) tarn__log(TARN_LOG_FAILURE, "%s", w->line);
  atomic_store(w->setup.lost, 1 + rank);
}

// Rank 0 reports missing heartbeats, rank 1 those of rank 0, and the others wait for the report.
static void look_for_silent(tarn__watch *w) {
  const double patience = w->setup.patience + (w->setup.rank > 1 ? 4 * w->setup.turn : 0.0);
  char what[160];
  int silent = 0, first = 0;
  for (int r = w->setup.size - 1; r >= 0; r--) {
    const peer *p = &w->peers[r];
    if (!p->beats || p->left || p->silent < patience) continue;
    silent++;
    first = r;
  }
  if (silent == 0 || w->setup.patience <= 0) return;
  const int length = snprintf(what, sizeof what, "has given no sign of life for %.0f s", w->setup.patience);
  if (silent > 1)
    snprintf(what + length, sizeof what - (size_t)length, ", nor %d further rank%s", silent - 1, silent > 2 ? "s" : "");
  else
    snprintf(what + length, sizeof what - (size_t)length, ": it was halted, or its host or the link to it is down");
  lose(w, first, w->setup.rank <= 1, what);
}

static void warn_of_waiting(tarn__watch *w, double seconds) {
  const long long begun = atomic_load(&w->begun);
  if (!atomic_load(&w->waits) || w->waits_in != begun || w->setup.patience <= 0) {
    w->waits_in = begun;
    w->waited = 0;
    w->warn_at = w->setup.patience;
    return;
  }
  w->waited += seconds;
  if (w->waited < w->warn_at) return;
  int late = 0, first = 0;
  for (int r = w->setup.size - 1; r > 0; r--) {
    const peer *p = &w->peers[r];
    // A silent rank is not known to be alive.
    if (p->left || p->newest.begun >= begun || p->silent > 2 * w->setup.turn) continue;
    late++;
    first = r;
  }
  if (late == 0) return;
  w->warn_at *= 2;
  char others[48] = "";
  if (late > 1) snprintf(others, sizeof others, " and %d further rank%s", late - 1, late > 2 ? "s" : "");
  tarn__log(TARN_LOG_WARNING, "waiting for rank %d on %s%s for %.0f s by now; it is alive", first,
            w->setup.members[first].host, others, w->waited);
}

// Sends a heartbeat to a rank, or none, and receives.
static bool beat(tarn__watch *w, int rank, const tarn__beat *own, bool *sent) {
  peer *p = &w->peers[rank];
  bool came = false;
  // A rank that MPI can no longer reach is silent: it may have ended because another one is lost.
  if (!p->broken) p->broken = w->setup.beat(w->setup.user, rank, own, sent, &p->newest, &came) != NULL;
  p->left = p->left || (came && p->newest.leaving);
  if (p->left && p->slot >= 0) pass_over(w, p);  // its process may end from now on
  // Another rank has reported it.
  if (came && p->newest.lost > 0 && p->newest.lost <= w->setup.size) lose(w, (int)p->newest.lost - 1, false, "is lost");
  return came;
}

static void exchange(tarn__watch *w, double seconds) {
  const tarn__beat own = {
      .begun = atomic_load(&w->begun), .waits = atomic_load(&w->waits), .lost = atomic_load(w->setup.lost)};
  for (int r = 0; r < w->setup.size; r++) {
    peer *p = &w->peers[r];
    bool sent;
    if (!p->beats || p->left) continue;
    p->silent = beat(w, r, &own, &sent) ? 0 : p->silent + seconds;
  }
}

// If several are dead, the launcher has killed some because of another: others report which was first. A rank that
// ended because another one is lost, or regularly, has said so in its last heartbeat, which was received after its end.
static void lose_dead(tarn__watch *w) {
  char what[96];
  int found = -1;
  for (int r = 0; r < w->setup.size; r++) {
    const peer *p = &w->peers[r];
    if (p->dead && !p->left && (found < 0 || !says_so(w, r))) found = r;
  }
  if (found < 0) return;
  snprintf(what, sizeof what, "has died (process %lld)", (long long)w->setup.members[found].pid);
  lose(w, found, says_so(w, found), what);
}

static void look_for_dead(tarn__watch *w) {
  bool any = false;
  for (int r = 0; r < w->setup.size; r++) {
    if (dead(w, r)) w->peers[r].dead = true;
    any = any || (w->peers[r].dead && !w->peers[r].left);
  }
  if (!any) return;
  exchange(w, 0);
  lose_dead(w);
}

// Announces this rank's leaving to another rank, once the previous heartbeat has been sent; without that it would count
// as lost. Receives what the other has sent. Returns whether to wait further, `since` seconds after the first attempt:
// briefly until the other rank leaves too, because some MPIs warn about unreceived messages at their end; and while it
// is silent, until it is given up, because finalising MPI would wait for it forever.
static bool part_from(tarn__watch *w, int rank, double since, double seconds) {
  peer *p = &w->peers[rank];
  const tarn__beat own = {.begun = atomic_load(&w->begun), .leaving = 1};
  const double moment = 3 * w->setup.turn, patience = w->setup.patience > moment ? w->setup.patience : moment;
  bool sent = false;
  if (!p->beats || p->broken || (p->left && p->told)) return false;
  if (dead(w, rank)) p->dead = true;
  p->silent = beat(w, rank, p->told ? NULL : &own, &sent) ? 0 : p->silent + seconds;
  p->told = p->told || sent;
  if (p->left || p->broken) return false;
  return since < moment || (!p->told && since < patience) || (p->silent >= moment && w->setup.patience > 0);
}

// Silence is counted in turns here too: this process may be halted for a while.
static void take_leave(tarn__watch *w) {
  const double begun = tarn__seconds();
  double last = begun;
  for (bool waits = true; waits && !atomic_load(w->setup.lost);) {
    const double now = tarn__seconds(), seconds = now - last < w->setup.turn ? now - last : w->setup.turn;
    last = now;
    waits = false;
    poll(w->polled, (nfds_t)w->polled_count, 0);
    for (int r = 0; r < w->setup.size; r++) waits = part_from(w, r, now - begun, seconds) || waits;
    lose_dead(w);
    if (waits) look_for_silent(w);
    if (waits) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

// One turn, or less if a process died meanwhile. Returns whether there is nothing left to watch.
static bool take_turn(tarn__watch *w, double *beaten) {
  const bool ends = w->polled[0].revents != 0;
  const double now = tarn__seconds();
  // In a turn that took much longer this process itself was halted. Others may have given it up since then, announced
  // that by a heartbeat, and ended.
  const bool held = now - *beaten >= 3 * w->setup.turn;
  if (held) exchange(w, w->setup.turn);
  look_for_dead(w);
  const bool lost = atomic_load(w->setup.lost) != 0;
  if (ends && !lost) return true;
  if (!lost && !held && now - *beaten < w->setup.turn) return false;
  const double seconds = held ? w->setup.turn : now - *beaten;
  *beaten = now;
  if (!held) exchange(w, seconds);
  look_for_silent(w);
  if (w->setup.rank == 0 && !atomic_load(w->setup.lost)) warn_of_waiting(w, seconds);
  return ends;
}

static void *watch_ranks(void *argument) {
  tarn__watch *w = argument;
  double beaten = tarn__seconds();
  for (bool ends = false; !ends && !atomic_load(w->setup.lost);) {
    const double left = w->setup.turn - (tarn__seconds() - beaten);
    poll(w->polled, (nfds_t)w->polled_count, left > 0 ? (int)(left * 1e3) + 1 : 0);
    ends = take_turn(w, &beaten);
  }
  if (!atomic_load(w->setup.lost)) take_leave(w);
  if (!atomic_load(w->setup.lost)) return NULL;
  // The others are informed before this process ends, some perhaps only now; then there is nothing left to watch.
  exchange(w, 0);
  if (poll(w->polled, 1, (int)(w->setup.turn * 1e3)) == 0) exchange(w, 0);
  return NULL;
}

static tarn_status make_peers(tarn__watch *w) {
  void *memory;
  const int size = w->setup.size;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)size, sizeof *w->peers));
  w->peers = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)size, sizeof *w->polled));
  w->polled = memory;
  w->polled[0] = (struct pollfd){.fd = w->wake, .events = POLLIN};
  w->polled_count = 1;
  for (int r = 0; r < size; r++) {
    peer *p = &w->peers[r];
    p->beats = r != w->setup.rank && (r == 0 || w->setup.rank == 0);
    p->slot = -1;
    const int fd = seen(w, r) ? (int)syscall(SYS_pidfd_open, (pid_t)w->setup.members[r].pid, 0) : -1;
    if (fd < 0) continue;
    p->slot = w->polled_count++;
    w->polled[p->slot] = (struct pollfd){.fd = fd, .events = POLLIN};
  }
  return TARN_STATUS_OK;
}

static void release(tarn__watch *w) {
  for (int i = 1; i < w->polled_count; i++) close(w->polled[i].fd < 0 ? ~w->polled[i].fd : w->polled[i].fd);
  if (w->wake >= 0) close(w->wake);
  pthread_mutex_destroy(&w->lock);
  tarn__free(w->polled);
  tarn__free(w->peers);
  tarn__free(w);
}

// Signals are left to the training thread.
static int start(tarn__watch *w) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&w->thread, NULL, watch_ranks, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

tarn_status tarn__watch_open(tarn__watch **watch, const tarn__watch_setup *setup) {
  void *memory;
  *watch = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **watch));
  tarn__watch *w = memory;
  w->setup = *setup;
  pthread_mutex_init(&w->lock, NULL);
  w->wake = eventfd(0, EFD_CLOEXEC);
  tarn_status status = w->wake >= 0 ? make_peers(w) : TARN_STATUS_OK;
  if (status == TARN_STATUS_OK && (w->wake < 0 || start(w) != 0))
    status = tarn__fail(TARN_STATUS_MEMORY, "the system gives no thread to watch the other ranks with");
  if (status == TARN_STATUS_OK)
    *watch = w;
  else
    release(w);
  return status;
}

void tarn__watch_close(tarn__watch **watch) {
  tarn__watch *w = *watch;
  if (!w) return;
  const uint64_t one = 1;
  const ssize_t written = write(w->wake, &one, sizeof one);
  (void)written;
  pthread_join(w->thread, NULL);
  release(w);
  *watch = NULL;
}

void tarn__watch_enter(tarn__watch *watch) {
  if (!watch) return;
  atomic_fetch_add(&watch->begun, 1);
  atomic_store(&watch->waits, 1);
}

void tarn__watch_leave(tarn__watch *watch) {
  if (watch) atomic_store(&watch->waits, 0);
}

void tarn__watch_go_on(tarn__watch *watch, const char *text) {
  if (!watch) return;
  pthread_mutex_lock(&watch->lock);
  snprintf(watch->go_on, sizeof watch->go_on, "%s", text);
  pthread_mutex_unlock(&watch->lock);
}

const char *tarn__watch_line(const tarn__watch *watch) {
  return watch && atomic_load(watch->setup.lost) ? watch->line : NULL;
}

const char *tarn__watch_await(const tarn__watch *watch) {
  if (!watch) return NULL;
  const double end = tarn__seconds() + watch->setup.patience + 10 * watch->setup.turn;
  while (!atomic_load(watch->setup.lost) && tarn__seconds() < end)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  return tarn__watch_line(watch);
}

#include "base/spinning.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"

#define LOOK_EVERY 0.25  // seconds
#define BUSY_SHARE 0.1
#define BUSY_AFTER 3.0  // seconds

void tarn__spinning_note(tarn__spinning *spinning, bool *busy, double now, double seconds, double waited) {
  const bool before = *busy;
  *busy = waited > BUSY_SHARE * seconds;
  if (*busy && (before || spinning->limited)) {
    spinning->limited = true;
    spinning->busy_until = now + BUSY_AFTER;
  } else if (now >= spinning->busy_until) {
    spinning->limited = false;
  }
}

// GCC's OpenMP reads how long to spin once, when it is loaded, but spins a hundred times at most while the program has
// more threads of OpenMP than processors (documented with GOMP_SPINCOUNT). So the switch is a thread whose own sleeping
// pool raises the number of threads above that. LLVM's OpenMP has no such rule.
#if defined(__GNUC__) && !defined(__clang__)
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int others;  // other threads of the holder's pool
  bool wanted, running;
} holder = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *hold(void *none) {
  (void)none;
  pthread_mutex_lock(&holder.lock);
  const int others = holder.others;
  pthread_mutex_unlock(&holder.lock);
  // OpenMP ends the program if it cannot start a thread, so this is tried first.
  const bool able = tarn__threads_startable(others) == others;
  if (able) {
#pragma omp parallel num_threads(others + 1)
    {
#pragma omp barrier  // a region without effect would be optimised away
    }
  }
  pthread_mutex_lock(&holder.lock);
  while (able && holder.wanted) pthread_cond_wait(&holder.changed, &holder.lock);
  holder.running = false;
  pthread_mutex_unlock(&holder.lock);
  return NULL;  // its pool ends with it
}

static bool start_holder(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                 pthread_create(&thread, &attributes, hold, NULL) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

void tarn__spinning_limit(bool limited, int threads) {
  // The caller's pool and the holder's other threads together are one more than the processors.
  int others = omp_get_num_procs() - threads + 1;
  if (others < 1) others = 1;
  pthread_mutex_lock(&holder.lock);
  holder.wanted = limited;
  if (limited && !holder.running && others <= TARN__SPINNING_MOST_OTHERS) {
    holder.others = others;
    holder.running = start_holder();
  }
  pthread_cond_signal(&holder.changed);
  pthread_mutex_unlock(&holder.lock);
}
#else
void tarn__spinning_limit(bool limited, int threads) {
  (void)limited;
  (void)threads;
}
#endif

// Seconds that the calling thread has been ready to run without running; negative: unknown.
static double waited_seconds(void) {
  unsigned long long running, waiting;
  FILE *file = fopen("/proc/thread-self/schedstat", "re");
  if (!file) return -1;
  int read = fscanf(file, "%llu %llu", &running, &waiting);
  fclose(file);
  return read == 2 ? (double)waiting * 1e-9 : -1;
}

static void act(double now, double seconds, double waited, int threads) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static tarn__spinning state;
  static _Thread_local bool busy;
  pthread_mutex_lock(&lock);
  bool before = state.limited;
  tarn__spinning_note(&state, &busy, now, seconds, waited);
  if (state.limited != before) tarn__spinning_limit(state.limited, threads);
  pthread_mutex_unlock(&lock);
}

// Whether the user has configured how threads wait.
static bool is_set(void) {
  const char *count = getenv("GOMP_SPINCOUNT");
  return getenv("OMP_WAIT_POLICY") || (count && strcmp(count, TARN__SPINNING_COUNT) != 0);
}

void tarn__spinning_look(void) {
  static _Thread_local double last_look, last_waited;
  double now = tarn__seconds();
  if (now - last_look < LOOK_EVERY || omp_in_parallel() || is_set()) return;
  const int threads = tarn__threads();
  if (threads == 1) return;
  double waited = waited_seconds();
  if (last_look > 0 && waited >= 0) act(now, now - last_look, waited - last_waited, threads);
  last_look = now;
  last_waited = waited;
}

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static double read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// On broken machines, and under programs that shift time, even monotonic clocks go back. This records what a clock has
// shown and the offset added to it. If it goes back by a second or more, time continues from the last value; if by
// less, the thread may just have been interrupted between reading the clock and this code, and time stands still.
typedef struct steady {
  _Atomic double shown, ahead;
} steady;

double tarn__clock_steady(double now, double *shown, double *ahead) {
  if (*shown - (now + *ahead) >= 1.0) *ahead = *shown - now;
  if (now + *ahead > *shown) *shown = now + *ahead;
  return *shown;
}

static double steady_seconds(steady *s, clockid_t clock) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const double now = read_clock(clock);
  double last = s->shown;
  // The common path takes no lock.
  if (s->ahead == 0.0 && now >= last) {
    while (last < now && !atomic_compare_exchange_weak(&s->shown, &last, now))
      ;
    return now;
  }
  pthread_mutex_lock(&lock);
  double shown = s->shown, ahead = s->ahead;
  const double seconds = tarn__clock_steady(now, &shown, &ahead);
  s->ahead = ahead;
  last = s->shown;
  while (last < shown && !atomic_compare_exchange_weak(&s->shown, &last, shown))
    ;
  pthread_mutex_unlock(&lock);
  return seconds;
}

double tarn__seconds(void) {
  static steady monotonic;
  return steady_seconds(&monotonic, CLOCK_MONOTONIC);
}

double tarn__cpu_seconds(void) {
  static steady processor;
  return steady_seconds(&processor, CLOCK_PROCESS_CPUTIME_ID);
}

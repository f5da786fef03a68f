#include "base/work.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"

enum { EVERY = 100 };  // milliseconds

static _Thread_local tarn_progress_fn receiver;
static _Thread_local void *receiver_user;
static _Thread_local tarn__work *at_hand;

void tarn_progress_set(tarn_progress_fn fn, void *user) {
  receiver = fn;
  receiver_user = user;
}

void tarn__work_begin(tarn__work *work, const char *what, const char *unit) {
  *work =
      (tarn__work){.what = what, .unit = unit, .fn = receiver, .user = receiver_user, .outer = at_hand, .share = NAN};
  at_hand = work;
  if (!work->fn) return;
  work->begun = tarn__seconds();
  pthread_mutex_init(&work->lock, NULL);
}

tarn__work *tarn__work_at_hand(void) { return at_hand; }

// With the lock held.
static void tell(tarn__work *work, double seconds, bool over) {
  const tarn_progress progress = {work->what, work->unit, work->done, work->share, seconds, over};
  work->told = true;
  work->fn(work->user, &progress);
}

// Whether a report is due; true for only one of several simultaneous callers.
static bool is_due(tarn__work *work, double seconds) {
  const int64_t now = (int64_t)(1000.0 * seconds);
  int64_t due = atomic_load_explicit(&work->due, memory_order_relaxed);
  return now >= due && atomic_compare_exchange_strong(&work->due, &due, now + EVERY);
}

void tarn__work_at(tarn__work *work, double done, double share) {
  if (!work || !work->fn) return;
  const double seconds = tarn__seconds() - work->begun;
  if (!is_due(work, seconds)) return;
  pthread_mutex_lock(&work->lock);
  work->done = done;
  work->share = share;
  tell(work, seconds, false);
  pthread_mutex_unlock(&work->lock);
}

void tarn__work_part(tarn__work *work, double done, double share, double then_done, double then_share) {
  if (!work->fn) return;
  tarn__work_at(work, done, share);
  pthread_mutex_lock(&work->lock);
  work->from_done = done;
  work->from_share = share;
  work->part_done = then_done - done;
  work->part_share = then_share - share;
  pthread_mutex_unlock(&work->lock);
}

void tarn__work_within(tarn__work *work, double fraction) {
  if (!work || !work->fn) return;
  tarn__work_at(work, work->from_done + fraction * work->part_done, work->from_share + fraction * work->part_share);
}

static void *tick(void *own) {
  tarn__work *work = own;
  pthread_mutex_lock(&work->lock);
  while (!work->stopped) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += EVERY * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_cond_timedwait(&work->stop, &work->lock, &until) != ETIMEDOUT) continue;
    const double seconds = tarn__seconds() - work->begun;
    if (is_due(work, seconds)) tell(work, seconds, false);
  }
  pthread_mutex_unlock(&work->lock);
  return NULL;
}

void tarn__work_tick(tarn__work *work) {
  if (!work->fn || work->ticks) return;
  work->share = NAN;
  pthread_cond_init(&work->stop, NULL);
  work->ticks = pthread_create(&work->ticker, NULL, tick, work) == 0;
  if (!work->ticks) pthread_cond_destroy(&work->stop);
}

static void stop_ticker(tarn__work *work) {
  pthread_mutex_lock(&work->lock);
  work->stopped = true;
  pthread_cond_signal(&work->stop);
  pthread_mutex_unlock(&work->lock);
  pthread_join(work->ticker, NULL);
  pthread_cond_destroy(&work->stop);
}

void tarn__work_end(tarn__work *work) {
  at_hand = work->outer;
  if (!work->fn) return;
  if (work->ticks) stop_ticker(work);
  if (work->told) tell(work, tarn__seconds() - work->begun, true);
  pthread_mutex_destroy(&work->lock);
}

// A piece of work that may take long, and who is told how far it is (tarn/progress.h). Without a receiver nothing but a
// test of a pointer is left.
#ifndef TARN_BASE_WORK_H
#define TARN_BASE_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tarn/progress.h"

// Lives in the function that does the work. Private but for tarn__work_begin().
typedef struct tarn__work {
  const char *what, *unit;
  tarn_progress_fn fn;  // NULL: nobody is told
  void *user;
  struct tarn__work *outer;  // of the same thread
  pthread_mutex_t lock;      // of reports
  double begun;              // on the clock
  _Atomic int64_t due;       // milliseconds after it when the next report may come
  bool told;
  double done, share;            // at the last report
  double from_done, from_share;  // where the part at hand begins
  double part_done, part_share;  // what it adds
  pthread_t ticker;
  pthread_cond_t stop;
  bool ticks, stopped;
} tarn__work;

// Begins, and ends in any case, failures included. The texts live as long. Work within work is told of in place of it.
void tarn__work_begin(tarn__work *work, const char *what, const char *unit);
void tarn__work_end(tarn__work *work);

// So many units and such a share (NAN: not known) are done. From any thread.
void tarn__work_at(tarn__work *work, double done, double share);

// The next part begins at `done` and `share`, and leads to `then_done` and `then_share`: so that whoever works on it
// needs to know its own fraction only.
void tarn__work_part(tarn__work *work, double done, double share, double then_done, double then_share);
// A fraction, 0 .. 1, of the part is done. From any thread; `work` may be NULL.
void tarn__work_within(tarn__work *work, double fraction);

// The innermost work of the calling thread; NULL if there is none.
tarn__work *tarn__work_at_hand(void);

// From now on a thread of its own reports how long it has taken, for what does not say how far it is: until
// tarn__work_end(). Where no thread can be had, nothing is reported.
void tarn__work_tick(tarn__work *work);

#endif

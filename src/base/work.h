// A piece of work that may take long, and reports of its progress (tarn/process.h). Without a receiver only the test
// of a pointer remains.
#ifndef TARN_BASE_WORK_H
#define TARN_BASE_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tarn/process.h"

// A local variable of the function that does the work. Private except for tarn__work_begin().
typedef struct tarn__work {
  const char *what, *unit;
  tarn_progress_fn fn;  // NULL: there is no receiver
  void *user;
  struct tarn__work *outer;  // of the same thread
  pthread_mutex_t lock;      // of reports
  double begun;              // on the clock
  _Atomic int64_t due;       // milliseconds after it when the next report may come
  bool told;
  double done, share;            // at the last report
  double from_done, from_share;  // the beginning of the current part
  double part_done, part_share;  // its contribution
  pthread_t ticker;
  pthread_cond_t stop;
  bool ticks, stopped;
} tarn__work;

// Call the end in any case, also on failure. The texts must live as long. Work within other work is reported in its
// place.
void tarn__work_begin(tarn__work *work, const char *what, const char *unit);
void tarn__work_end(tarn__work *work);

// This many units and this share (NAN: unknown) are done. From any thread.
void tarn__work_at(tarn__work *work, double done, double share);

// The next part begins at `done` and `share`, and leads to `then_done` and `then_share`, so its code need only know its
// own fraction.
void tarn__work_part(tarn__work *work, double done, double share, double then_done, double then_share);
// A fraction, 0 .. 1, of the part is done. From any thread; `work` may be NULL.
void tarn__work_within(tarn__work *work, double fraction);

// The innermost work of the calling thread; NULL if there is none.
tarn__work *tarn__work_at_hand(void);

// From now on until tarn__work_end() a separate thread reports the elapsed time, for work whose progress is not known.
// If no thread can be started, nothing is reported.
void tarn__work_tick(tarn__work *work);

#endif

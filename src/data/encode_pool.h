// Threads that work on jobs in the order in which they were given, while the one who gave them reads, writes and, where
// it would have to wait, works on jobs itself. It stands beside the pool of OpenMP, whose regions end at a barrier: one
// long line would keep all threads waiting there.
#ifndef TARN_DATA_ENCODE_POOL_H
#define TARN_DATA_ENCODE_POOL_H

#include <stdbool.h>

#include "base/status.h"

// Lives with whoever gives it, and stays where it is until it is done or was cancelled.
typedef struct tarn__encode_job {
  void (*run)(void *user);  // on any of the threads; what fails in it is its own to keep (tarn__failure)
  void *user;
  // Private.
  struct tarn__encode_job *next;  // that waits
  enum { TARN__JOB_NONE, TARN__JOB_WAITS, TARN__JOB_RUNS, TARN__JOB_DONE } state;
} tarn__encode_job;

typedef struct tarn__encode_pool tarn__encode_pool;

// `threads` with the calling one, which alone may use the pool. Where not all of them can be started there are fewer.
tarn_status tarn__encode_pool_open(tarn__encode_pool **pool, int threads) TARN_CHECKED;
// All jobs must be done or cancelled.
void tarn__encode_pool_close(tarn__encode_pool **pool);

void tarn__encode_pool_add(tarn__encode_pool *pool, tarn__encode_job *job);
// Returns when the job is done, and works meanwhile on those that wait.
void tarn__encode_pool_wait(tarn__encode_pool *pool, tarn__encode_job *job);
// Takes a job back: it will not begin; where it runs, this waits for its end.
void tarn__encode_pool_cancel(tarn__encode_pool *pool, tarn__encode_job *job);

#endif

// Threads that process jobs in first-in-first-out order, while the calling thread reads, writes and, instead of
// waiting, processes jobs itself. OpenMP does not suit this: its regions end at a barrier, where all threads would wait
// for one long line.
#ifndef TARN_DATA_ENCODE_POOL_H
#define TARN_DATA_ENCODE_POOL_H

#include <stdbool.h>

#include "base/status.h"

// Owned by the caller; must not move until it is done or cancelled.
typedef struct tarn__encode_job {
  void (*run)(void *user);  // on any of the threads; must keep its own failures (tarn__failure)
  void *user;
  // Private.
  struct tarn__encode_job *next;  // in the queue
  enum { TARN__JOB_NONE, TARN__JOB_WAITS, TARN__JOB_RUNS, TARN__JOB_DONE } state;
} tarn__encode_job;

typedef struct tarn__encode_pool tarn__encode_pool;

// `threads` includes the calling one; only that one may use the pool. There are fewer if not all can be started.
tarn_status tarn__encode_pool_open(tarn__encode_pool **pool, int threads) TARN_CHECKED;
// All jobs must be done or cancelled.
void tarn__encode_pool_close(tarn__encode_pool **pool);

void tarn__encode_pool_add(tarn__encode_pool *pool, tarn__encode_job *job);
// Waits for the job, processing queued jobs meanwhile.
void tarn__encode_pool_wait(tarn__encode_pool *pool, tarn__encode_job *job);
// Removes a job from the queue, or waits for its end if it is running.
void tarn__encode_pool_cancel(tarn__encode_pool *pool, tarn__encode_job *job);

#endif

// A queue that collects requests of many threads into batches, processed by one thread. It connects a server, or any
// multi-threaded program, to a translator, scorer, generator or classifier, which only one thread may use at a time and
// which processes many texts together much faster than one by one.
//
//   tarn_work_queue_options options;
//   tarn_work_queue_default(&options);
//   options.work = translate_batch;  // calls tarn_translator_lines() with the texts of all items
//   options.user = &state;
//   tarn_work_queue *queue;
//   status = tarn_work_queue_open(&queue, &options);
//   if (!tarn_work_queue_add(queue, item, length)) ...  // from any thread; false: the queue is full
//   tarn_work_queue_close(&queue);
//
// When its thread is free and items are waiting, the queue forms a batch of the oldest item and the others that may
// join it, in order of arrival. A batch waits for more items only if more are likely: while fewer are waiting than when
// the last batch was formed, as its callers may be about to send their next requests, and never longer than `wait`. So
// a single caller never waits, and callers that send a request after each answer soon share one batch.
#ifndef TARN_WORK_QUEUE_H
#define TARN_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_work_queue_options {
  // Processes a batch, on the queue's thread. The caller owns the items; the callback frees them and delivers the
  // results. Must be set.
  void (*work)(void *user, void *const *items, size_t count);
  // Called once on the queue's thread before anything else, to open a model there: its threads then work for this model
  // only. If it fails, tarn_work_queue_open() fails with the same status. Default NULL: nothing is called.
  tarn_status (*start)(void *user);
  // Whether an item may join a batch that begins with `first`. Called while the queue is locked, so it must not call
  // the queue. Default NULL: always.
  bool (*together)(void *user, const void *first, const void *item);
  void *user;         // default NULL
  int64_t capacity;   // maximum number of waiting items, 1 .. 1000000; default 1024
  int64_t max_cost;   // maximum total cost of a batch, in the caller's unit; an item above it forms its own batch. At
                      // least 1; default 16384
  int64_t max_items;  // maximum items of a batch, at least 1; default 256
  double wait;        // seconds, 0 .. 10; default 0.003
} tarn_work_queue_options;

TARN_API void tarn_work_queue_default(tarn_work_queue_options *options);

typedef struct tarn_work_queue tarn_work_queue;

// Starts the thread. Fails with USAGE (options), MEMORY, IO (no thread can be started), or what options.start does.
TARN_API tarn_status tarn_work_queue_open(tarn_work_queue **queue, const tarn_work_queue_options *options) TARN_CHECKED;

// Adds an item of this cost, 0 or more, from any thread. Returns false if the item was not taken: `capacity` items are
// waiting, or the queue was stopped. The callback may process the item before this returns.
TARN_API bool tarn_work_queue_add(tarn_work_queue *queue, void *item, int64_t cost);

// During `work`, by one thread at a time: takes a waiting item that may be processed together with `first`, an item of
// the current batch, to join that batch; the first of them in the order of arrival. NULL: none waits, or `max_items`
// items have joined while an older one that may not was waiting: it must not wait for ever.
TARN_API void *tarn_work_queue_join(tarn_work_queue *queue, const void *first);

// Number of waiting items, without those being processed.
TARN_API int64_t tarn_work_queue_waiting(const tarn_work_queue *queue);

// From now on the queue takes no items, and batches do not wait for more. Waiting items are still processed.
TARN_API void tarn_work_queue_stop(tarn_work_queue *queue);

// Stops the queue, and returns when the last item has been processed and the thread has ended. The queue stays valid
// for threads that may still use it: it takes no items, and none are waiting. Must not be called from a callback.
TARN_API void tarn_work_queue_finish(tarn_work_queue *queue);

// Finishes the queue and frees it; no thread may use it any more. Must not be called from a callback.
TARN_API void tarn_work_queue_close(tarn_work_queue **queue);

#ifdef __cplusplus
}
#endif
#endif

// A queue that gathers the requests of many threads into batches, and one thread that works on them. It belongs between
// a server, or any program with several threads, and a translator, scorer, generator or classifier, which only one
// thread may use at a time and which computes many texts together in far less time than one after another.
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
// When its thread is free and items are waiting, the queue makes a batch of the oldest item and the others that may go
// with it, in the order of their arrival. A batch waits for more items only if more are to be expected: while fewer are
// waiting than were when the last batch was made, whose callers may be about to ask again, and never longer than
// `wait`. So a single caller never waits, and callers that each ask again when they are answered soon share one batch.
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
  // Works on a batch, on the queue's thread. Items belong to the caller; it is up to the callback to free them and to
  // pass on the results. Must be set.
  void (*work)(void *user, void *const *items, size_t count);
  // Called once on the queue's thread before anything else, to open a model there: its threads then work for this model
  // alone. If it fails, tarn_work_queue_open() fails with the same status. Default NULL: nothing is called.
  tarn_status (*start)(void *user);
  // Whether an item may go into the batch that `first` begins. Called while the queue is locked, so it must not call
  // the queue. Default NULL: always.
  bool (*together)(void *user, const void *first, const void *item);
  void *user;        // default NULL
  int64_t capacity;  // most items that may wait, 1 .. 1000000; default 1024
  int64_t max_cost;  // of all items of a batch together, in the caller's unit; an item that costs more goes alone. 1 or
                     // more; default 16384
  int64_t max_items;  // in a batch, 1 or more; default 256
  double wait;        // seconds, 0 .. 10; default 0.003
} tarn_work_queue_options;

TARN_API void tarn_work_queue_default(tarn_work_queue_options *options);

typedef struct tarn_work_queue tarn_work_queue;

// Starts the thread. Fails with USAGE (options), MEMORY, IO (no thread can be started), or what options.start does.
TARN_API tarn_status tarn_work_queue_open(tarn_work_queue **queue, const tarn_work_queue_options *options) TARN_CHECKED;

// Adds an item of this cost, 0 or more, from any thread. False: the item was not taken, because `capacity` items are
// waiting or the queue was stopped. The callback may be working on the item before this returns.
TARN_API bool tarn_work_queue_add(tarn_work_queue *queue, void *item, int64_t cost);

// Number of items that are waiting and not being worked on yet.
TARN_API int64_t tarn_work_queue_waiting(const tarn_work_queue *queue);

// From now on no item is taken, and batches do not wait for more. Items that are waiting are still worked on.
TARN_API void tarn_work_queue_stop(tarn_work_queue *queue);

// Stops the queue, and returns when the last item has been worked on and the thread has ended. The queue stays valid
// for threads that may still use it: it takes no item, and none is waiting. Must not be called from a callback.
TARN_API void tarn_work_queue_finish(tarn_work_queue *queue);

// Finishes the queue and frees it; no thread may use it any more. Must not be called from a callback.
TARN_API void tarn_work_queue_close(tarn_work_queue **queue);

#ifdef __cplusplus
}
#endif
#endif

// A queue that makes batches of what many threads ask for, and one thread that works on them: what stands between a
// server, or any program with several threads, and a translator, scorer, generator or classifier, which one thread uses
// at a time and which computes many texts together for far less than one after the other.
//
//   tarn_work_queue_options options;
//   tarn_work_queue_default(&options);
//   options.work = translate_batch;  // calls tarn_translator_lines() with the texts of all items
//   options.user = &state;
//   tarn_work_queue *queue;
//   status = tarn_work_queue_open(&queue, &options);
//   if (!tarn_work_queue_add(queue, item, length)) ...  // from any thread; full
//   tarn_work_queue_close(&queue);
//
// When its thread is free and items wait, the queue makes a batch: the oldest item, and the others that may go with it
// in the order of their arrival. A batch does not wait for more unless more are to be expected: only while fewer items
// wait than the last batch had, whose callers may be about to ask again, and never longer than `wait`. So a single
// caller never waits, and callers that each ask again when they are answered soon go into one batch together.
#ifndef TARN_WORK_QUEUE_H
#define TARN_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_work_queue_options {
  // Works on a batch, on the queue's thread. Items belong to the caller: what becomes of them, and who is told, is the
  // callback's business. Must be set.
  void (*work)(void *user, void *const *items, size_t count);
  // Called once on the queue's thread before all else, to open a model there: its threads then work for that one
  // alone. What it fails with, tarn_work_queue_open() does. Default NULL: nothing.
  tarn_status (*start)(void *user);
  // Whether an item may go into the batch that `first` begins. Called with the queue locked: it must not call the
  // queue. Default NULL: always.
  bool (*together)(void *user, const void *first, const void *item);
  void *user;        // default NULL
  int64_t capacity;  // most items that wait, 1 .. 1000000; default 1024
  int64_t max_cost;  // of the items of a batch together, in the caller's unit; an item that costs more goes alone. 1 or
                     // more; default 16384
  int64_t max_items;  // of a batch, 1 or more; default 256
  double wait;        // seconds, 0 .. 10; default 0.003
} tarn_work_queue_options;

TARN_API void tarn_work_queue_default(tarn_work_queue_options *options);

typedef struct tarn_work_queue tarn_work_queue;

// Starts the thread. Fails with USAGE (options), MEMORY, IO (no thread can be started), or what options.start does.
TARN_API tarn_status tarn_work_queue_open(tarn_work_queue **queue, const tarn_work_queue_options *options) TARN_CHECKED;

// Hands in an item of this cost, 0 or more, from any thread. False: `capacity` items wait, or the queue was stopped;
// then the item was not taken. The callback may be at work on it before this returns.
TARN_API bool tarn_work_queue_add(tarn_work_queue *queue, void *item, int64_t cost);

// Items that wait and are not in work yet.
TARN_API int64_t tarn_work_queue_waiting(const tarn_work_queue *queue);

// From now on no item is taken, and batches do not wait for more. What waits is still worked on.
TARN_API void tarn_work_queue_stop(tarn_work_queue *queue);

// Stops the queue, and frees it when the last item has been worked on. Not to be called from a callback.
TARN_API void tarn_work_queue_close(tarn_work_queue **queue);

#ifdef __cplusplus
}
#endif
#endif

// Batches prepared ahead by a thread of their own: while a step computes, the next batch is packed into a second room,
// and at the end of an epoch the next one is sorted. There is one handing over a batch, by two semaphores, and nothing
// else is shared, so the batches are those of the batcher, one by one.
#ifndef TARN_DATA_LOADER_H
#define TARN_DATA_LOADER_H

#include "data/batch.h"

// One batch and its place. The memory belongs to the loader and is valid until its next call.
typedef struct tarn__loaded {
  tarn__batch batch;
  int64_t batches;                 // of the update that it is a part of
  int64_t targets;                 // target tokens of that whole update
  int64_t next_epoch, next_index;  // position behind the batch
  int64_t next_batches;            // batches of the epoch of that position
  double begin, end;               // when it was prepared (tarn__seconds())
} tarn__loaded;

typedef struct tarn__loader tarn__loader;

// Starts the thread at the batcher's position, where an update must begin. An update is `accumulate` batches and never
// reaches into the next epoch, so the last one of an epoch may have fewer. Until the loader is closed the batcher is
// its own; afterwards the batcher must be sought before it is used. Fails with MEMORY: also where no thread can be had.
tarn_status tarn__loader_open(tarn__loader **loader, tarn__batcher *batcher, int64_t accumulate) TARN_CHECKED;
// Stops the thread, after the batch that it works on.
void tarn__loader_close(tarn__loader **loader);

// Gives the next batch; waits if it is not ready.
const tarn__loaded *tarn__loader_next(tarn__loader *loader);

#endif

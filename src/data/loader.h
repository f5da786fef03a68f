// Batches prepared ahead by a thread of their own: while a step computes, the next batch is packed into a second room,
// and at the end of an epoch the next one is sorted. There is one handing over a batch, by two semaphores, and nothing
// else is shared, so the batches are those of the batcher, one by one.
//
// With several ranks the batches of an update are dealt out: batch k belongs to rank k modulo the number of ranks. So
// all ranks together compute what one computes whose updates have as many batches. Every rank goes through the same
// order and packs only its own.
#ifndef TARN_DATA_LOADER_H
#define TARN_DATA_LOADER_H

#include "data/batch.h"

// One batch and its place. The memory belongs to the loader and is valid until its next call. What is said of an update
// is of all ranks.
typedef struct tarn__loaded {
  tarn__batch batch;               // without sentences: the update, the last of an epoch, has fewer batches than ranks
  int64_t batches;                 // of the update that it is a part of
  int64_t number;                  // of this one in the update, from 0
  bool last;                       // this rank has no other one in the update
  int64_t predictions;             // of that whole update, which its loss is a mean over
  int64_t next_epoch, next_index;  // position behind the batch and those of other ranks before this rank's next one
  int64_t next_batches;            // batches of the epoch of that position
  double begin, end;               // when it was prepared (tarn__seconds())
} tarn__loaded;

typedef struct tarn__loader tarn__loader;

// Whose batches are wanted, and how many each rank has in an update. Rank 0 of 1 with accumulate 1 gets every batch.
typedef struct tarn__loader_share {
  int rank, ranks;
  int64_t accumulate;
} tarn__loader_share;

// Starts the thread at the batcher's position, where an update must begin. An update is `accumulate` batches of each
// rank and never reaches into the next epoch, so the last one of an epoch may have fewer. Until the loader is closed
// the batcher is its own; afterwards the batcher must be sought before it is used. Fails with MEMORY: also where no
// thread can be had.
tarn_status tarn__loader_open(tarn__loader **loader, tarn__batcher *batcher,
                              const tarn__loader_share *share) TARN_CHECKED;
// Stops the thread, after the batch that it works on.
void tarn__loader_close(tarn__loader **loader);

// Gives the next batch; waits if it is not ready.
const tarn__loaded *tarn__loader_next(tarn__loader *loader);

#endif

// Batches prepared ahead by a separate thread: while a step computes, the thread packs the next batch into a second
// room (buffer), and at the end of an epoch it sorts the next one. Batches are handed over by two semaphores and
// nothing else is shared, so the batches are exactly those of the batcher.
//
// With several ranks, batch k of an update belongs to rank k modulo the number of ranks. So all ranks together compute
// the same as a single rank with as many batches per update. Every rank goes through the same order and packs only its
// own batches.
#ifndef TARN_DATA_LOADER_H
#define TARN_DATA_LOADER_H

#include "data/batch.h"

// One batch and its place. The memory belongs to the loader and is valid until its next call. The fields about an
// update cover all ranks.
typedef struct tarn__loaded {
  tarn__batch batch;               // without sentences if the last update of an epoch has fewer batches than ranks
  int64_t batches;                 // of its update
  int64_t number;                  // of this batch in the update, from 0
  bool last;                       // the last one of this rank in the update
  int64_t predictions;             // of the whole update; its loss is their mean
  int64_t next_epoch, next_index;  // position after the batch and those of other ranks before this rank's next one
  int64_t next_batches;            // batches of the epoch of that position
  double begin, end;               // times of its preparation (tarn__seconds())
} tarn__loaded;

typedef struct tarn__loader tarn__loader;

// The rank whose batches are wanted, and the number of batches of each rank in an update. Rank 0 of 1 with accumulate 1
// gets every batch.
typedef struct tarn__loader_share {
  int rank, ranks;
  int64_t accumulate;
} tarn__loader_share;

// Starts the thread at the batcher's position, where an update must begin. An update has `accumulate` batches per rank
// and never extends into the next epoch, so the last one of an epoch may have fewer. The loader owns the batcher until
// it is closed; afterwards the batcher must seek before it is used. Fails with MEMORY, also if the thread cannot be
// started.
tarn_status tarn__loader_open(tarn__loader **loader, tarn__batcher *batcher,
                              const tarn__loader_share *share) TARN_CHECKED;
// Stops the thread after its current batch.
void tarn__loader_close(tarn__loader **loader);

// Returns the next batch; waits until it is ready.
const tarn__loaded *tarn__loader_next(tarn__loader *loader);

#endif

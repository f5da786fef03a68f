// The numbers that decide updates (device/step_numbers.h) during training. With a device that has its own memory, the
// host reads them when it reports or saves, at least every train.log_every updates; otherwise after each update.
#ifndef TARN_TRAIN_NUMBERS_H
#define TARN_TRAIN_NUMBERS_H

#include "device/step_numbers.h"
#include "device/transfer.h"
#include "store/checkpoint.h"
#include "tarn/train.h"

// Zero-initialise it.
typedef struct tarn__numbers {
  const tarn__device *device;
  tarn__step_numbers *there;  // in device memory
  tarn__step_numbers now;     // the values last read
  bool late;                  // not read after each update
  bool unread;                // an update has been decided since they were read
} tarn__numbers;

// `ranks`: if there are several, they exchange the sums of each update, so their hosts read them.
tarn_status tarn__numbers_open(tarn__numbers *numbers, const tarn__device *device, int ranks) TARN_CHECKED;
void tarn__numbers_close(tarn__numbers *numbers);

// Before the batches of an update: clears its own numbers, and sets the sums to those of train->progress.
tarn_status tarn__numbers_begin(tarn_train *train) TARN_CHECKED;
// Set the sums of the loss and of the watched measure over all ranks; and the norms.
tarn_status tarn__numbers_set_loss(tarn__numbers *numbers, double loss, double watched) TARN_CHECKED;
tarn_status tarn__numbers_set_norms(tarn__numbers *numbers, double norm, double helpers) TARN_CHECKED;
// Reads the numbers into numbers->now, without checking them.
tarn_status tarn__numbers_get(tarn__numbers *numbers) TARN_CHECKED;

// If an update has been decided since the last call: reads its numbers into numbers->now, and the sums into *progress
// or train->progress. Fails with NUMERIC, naming the update, if one failed.
tarn_status tarn__numbers_take(tarn_train *train, tarn__progress *progress) TARN_CHECKED;
tarn_status tarn__numbers_read(tarn_train *train) TARN_CHECKED;

#endif

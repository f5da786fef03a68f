// The numbers that decide updates (device/step_numbers.h) of a training. On a device with memory of its own the host
// reads them when it has something to say or to save, at the latest every train.log_every updates; else after each.
#ifndef TARN_TRAIN_NUMBERS_H
#define TARN_TRAIN_NUMBERS_H

#include "device/step_numbers.h"
#include "device/transfer.h"
#include "store/checkpoint.h"
#include "tarn/train.h"

// Zero-initialise it.
typedef struct tarn__numbers {
  const tarn__device *device;
  tarn__step_numbers *there;  // in the memory of the device
  tarn__step_numbers now;     // as they were read last
  bool late;                  // they are not read after each update
  bool unread;                // an update has been decided since
} tarn__numbers;

// `ranks`: more than one of them say the sums of each update to each other, so that their hosts read them.
tarn_status tarn__numbers_open(tarn__numbers *numbers, const tarn__device *device, int ranks) TARN_CHECKED;
void tarn__numbers_close(tarn__numbers *numbers);

// Before the batches of an update: its own numbers are 0, and the sums are those of train->progress.
tarn_status tarn__numbers_begin(tarn_train *train) TARN_CHECKED;
// Says what the sums of the loss and of the measure that is watched are over all ranks; or what the norms are.
tarn_status tarn__numbers_set_loss(tarn__numbers *numbers, double loss, double watched) TARN_CHECKED;
tarn_status tarn__numbers_set_norms(tarn__numbers *numbers, double norm, double helpers) TARN_CHECKED;
// numbers->now is what they are; without judging them.
tarn_status tarn__numbers_get(tarn__numbers *numbers) TARN_CHECKED;

// If an update has been decided since the last time: brings its numbers to numbers->now, and the sums to *progress, or
// to train->progress. Fails with NUMERIC, and names the update, if one could not be made.
tarn_status tarn__numbers_take(tarn_train *train, tarn__progress *progress) TARN_CHECKED;
tarn_status tarn__numbers_read(tarn_train *train) TARN_CHECKED;

#endif

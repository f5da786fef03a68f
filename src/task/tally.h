// Sums over the batches of a data set.
#ifndef TARN_TASK_TALLY_H
#define TARN_TASK_TALLY_H

#include <stdint.h>

// Zero-initialise it.
typedef struct tarn__task_tally {
  double loss, watched;  // sums
  int64_t predictions;
  int64_t characters;  // of the set, if it is scored per character; else 0
  int64_t bytes;       // likewise
  int64_t right;       // correct predictions, if the entry counts them
  void *room;          // memory allocated by count(); its caller frees it with tarn__free()
} tarn__task_tally;

#endif

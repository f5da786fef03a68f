// What is counted over the batches of a set of data.
#ifndef TARN_TASK_TALLY_H
#define TARN_TASK_TALLY_H

#include <stdint.h>

// Zero-initialise it.
typedef struct tarn__task_tally {
  double loss, watched;  // sums
  int64_t predictions;
  int64_t characters;  // of the set, where it is scored by them; 0: it is not
  int64_t bytes;       // likewise
  int64_t right;       // predictions that are right, where the entry counts them
  void *room;          // memory that count() took, and who called it frees with tarn__free()
} tarn__task_tally;

#endif

// Sums of gradients over ranks. What travels is what learned in an update on any rank: nothing of frozen or stopped
// parameters, and of tables that embeddings read only the rows that some rank used. What a rank did not write in the
// update counts as zero, whatever its memory holds.
#ifndef TARN_TRAIN_GRADIENT_SUM_H
#define TARN_TRAIN_GRADIENT_SUM_H

#include "comm/comm.h"
#include "model/model.h"

// Zero-initialise or open.
typedef struct tarn__gradient_sum {
  tarn__comm *comm;
  const tarn__model *model;
  float *marks;  // [mark_count]: 1 for each parameter that was written, and for each row of it that was used
  int64_t mark_count;
  float *room;    // what is summed at a time
  int64_t most;   // floats of it
  uint8_t *used;  // rows of one table
} tarn__gradient_sum;

// Bytes that it takes with so many ranks: none with one.
size_t tarn__gradient_sum_bytes(const tarn__model *model, int ranks);
// The model and the communicator must outlive it.
tarn_status tarn__gradient_sum_open(tarn__gradient_sum *sum, tarn__comm *comm, const tarn__model *model) TARN_CHECKED;
void tarn__gradient_sum_close(tarn__gradient_sum *sum);

// After it the gradients of all ranks, and what is known of them (grad_written, used_rows), are the same.
tarn_status tarn__gradient_sum_run(tarn__gradient_sum *sum) TARN_CHECKED;

#endif

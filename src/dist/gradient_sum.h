// Sums of gradients over ranks. What travels is what learned in an update on any rank: nothing of frozen or stopped
// parameters, and of tables that embeddings read only the rows that some rank used. What a rank did not write in the
// update counts as zero, whatever its memory holds. train.reduce says how it travels; where ranks share the optimiser
// (model.shares_optimiser) the sums stay with the ranks whose parts they are, in the same bits.
#ifndef TARN_DIST_GRADIENT_SUM_H
#define TARN_DIST_GRADIENT_SUM_H

#include "comm/comm.h"
#include "dist/optim_parts.h"
#include "model/model.h"

// Zero-initialise or open.
typedef struct tarn__gradient_sum {
  tarn__comm *comm;
  const tarn__model *model;
  const tarn__optim_parts *parts;
  int64_t most;            // elements after which no further parameter is summed in the same call
  void *memory;            // of all that follows
  tarn__comm_span *spans;  // what is summed at a time, and
  int64_t *numbers;        // [ranks], of each rank
  float *room;             // for the values, where the device's memory is not the host's; [room_count]
  int64_t room_count;
  tarn__device_stream *stream;  // on which gradients are read and written; NULL: the one that the device always has
  int64_t payload;              // bytes that the newest run summed, counted once, as they travel
  uint8_t *written;             // [parameters]: 1 for those that some rank wrote
  uint8_t *used;                // rows of one table
  uint8_t *bits;  // a bit for each parameter, or for each row of a table: of this rank, then [ranks] of all
} tarn__gradient_sum;

// Bytes that it takes with so many ranks, with what the communicator takes: none with one.
size_t tarn__gradient_sum_bytes(const tarn__model *model, int ranks);
// The model, which has its memory, the communicator and the parts must outlive it. With one rank there need be no
// parts.
tarn_status tarn__gradient_sum_open(tarn__gradient_sum *sum, tarn__comm *comm, const tarn__model *model,
                                    const tarn__optim_parts *parts) TARN_CHECKED;
void tarn__gradient_sum_close(tarn__gradient_sum *sum);

// What sums wait for that begin before all gradients are there.
typedef struct tarn__gradient_gate {
  bool (*wait)(void *user, size_t nodes);  // until so many nodes of the graph have run; false: the sums are to end
  void *user;
  size_t *last;  // [param_count]: nodes that have run when nothing more is added to a gradient; 0: nothing is
} tarn__gradient_gate;

// tarn__gradient_sum_run() in two steps, the second with a gate (NULL: none): what this rank has written or will write,
// then the sums. What the gate does not let through is left as it is.
void tarn__gradient_sum_begin(tarn__gradient_sum *sum, const tarn__gradient_gate *gate);
tarn_status tarn__gradient_sum_through(tarn__gradient_sum *sum, const tarn__gradient_gate *gate) TARN_CHECKED;

// After it what is known of the gradients of all ranks (grad_written, used_rows) is the same, and so are the gradients,
// or those of the part of each rank.
tarn_status tarn__gradient_sum_run(tarn__gradient_sum *sum) TARN_CHECKED;

#endif

// Sums of gradients over ranks. Only gradients written by some rank in the update are sent: none of frozen or stopped
// parameters, and of tables that embeddings read only the rows used by some rank. Gradients that a rank did not write
// count as zero, regardless of its memory. train.reduce gives the format; if ranks share the optimiser
// (model.shares_optimiser) each rank keeps only the sums of its parts, with the same bits.
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
  int64_t most;            // limit of elements for adding a further parameter to a call
  void *memory;            // of the following arrays
  tarn__comm_span *spans;  // the spans of a call, and
  int64_t *numbers;        // [ranks], their number for each rank
  float *room;             // a copy of the values if the device has separate memory; [room_count]
  int64_t room_count;
  tarn__device_stream *stream;  // of the reads and writes of gradients; NULL: the device's default stream
  int64_t payload;              // bytes summed by the newest run, counted once, in the transfer format
  uint8_t *written;             // [parameters]: 1 for those that some rank wrote
  uint8_t *used;                // rows of one table
  uint8_t *bits;  // a bit for each parameter, or for each row of a table: of this rank, then [ranks] of all
} tarn__gradient_sum;

// Its memory in bytes with so many ranks, including the communicator's; 0 with one.
size_t tarn__gradient_sum_bytes(const tarn__model *model, int ranks);
// The model, with its memory, the communicator and the parts must outlive it. One rank needs no parts.
tarn_status tarn__gradient_sum_open(tarn__gradient_sum *sum, tarn__comm *comm, const tarn__model *model,
                                    const tarn__optim_parts *parts) TARN_CHECKED;
void tarn__gradient_sum_close(tarn__gradient_sum *sum);

// The gate of sums that begin before all gradients are complete.
typedef struct tarn__gradient_gate {
  bool (*wait)(void *user, size_t nodes);  // waits until so many nodes of the graph have run; false: the sums must end
  void *user;
  size_t *last;  // [param_count]: number of nodes after which a gradient is complete; 0: nothing is added
} tarn__gradient_gate;

// tarn__gradient_sum_run() in two steps, the second with a gate (NULL: none): first the gradients that this rank has
// written or will write, then the sums. Gradients that the gate rejects stay unchanged.
void tarn__gradient_sum_begin(tarn__gradient_sum *sum, const tarn__gradient_gate *gate);
tarn_status tarn__gradient_sum_through(tarn__gradient_sum *sum, const tarn__gradient_gate *gate) TARN_CHECKED;

// Afterwards all ranks have the same flags (grad_written, used_rows) and the same gradients, or each rank those of its
// part.
tarn_status tarn__gradient_sum_run(tarn__gradient_sum *sum) TARN_CHECKED;

#endif

// Communication of ranks with a sharded optimiser (optim_parts.h): the norm of the gradients, the new weights,
// AutoFreeze's norms, and the state that rank 0 needs to write a checkpoint.
#ifndef TARN_DIST_OPTIM_SHARE_H
#define TARN_DIST_OPTIM_SHARE_H

#include "comm/comm.h"
#include "device/step_numbers.h"
#include "dist/optim_parts.h"
#include "optim/param_table.h"
#include "store/checkpoint.h"

// Zero-initialise or open. Zero is valid for a single rank.
typedef struct tarn__optim_share {
  tarn__comm *comm;
  tarn__optim_parts parts;
  tarn__param_table table, helpers;  // this rank's parts of the model's parameters and of its helpers
  bool shares;                       // moments and updates, not only the norm
  char *room;                        // [ranks, each]: buffer for small parameters
  size_t each;
  struct tarn__optim_place *places;  // [ranks]
  int64_t *first;                    // [ranks + 1]
} tarn__optim_share;

// Whether the ranks of a training share moments and updates.
bool tarn__optim_shares(const tarn_config *config, int ranks);
// Bytes of the buffer.
size_t tarn__optim_share_bytes(const tarn_config *config, int ranks);

// Takes the memory of the parts if the model has shares_optimiser; the model has its memory. With one rank nothing is
// opened. The model and the communicator must outlive it.
tarn_status tarn__optim_share_open(tarn__optim_share *share, tarn__comm *comm, const tarn__model *model) TARN_CHECKED;
void tarn__optim_share_close(tarn__optim_share *share);

// The norms of the gradients of the model and of its helpers over several ranks: each sums the squares of its parts,
// and the sums are added in the order of the ranks. Refreshes the parts first. The device computes in *numbers.
tarn_status tarn__optim_share_norms(tarn__optim_share *share, double *model, double *helpers,
                                    tarn__step_numbers *numbers, int threads) TARN_CHECKED;

// Gives each rank the new values of all parameters that move (optim/adam.h), in the kernels' type.
tarn_status tarn__optim_share_weights(tarn__optim_share *share) TARN_CHECKED;

// Adds the absolute values of AutoFreeze's sums of parameter `index` to *norm, in the order of a single rank, and
// clears the sums.
tarn_status tarn__optim_share_absolute(tarn__optim_share *share, size_t index, double *norm) TARN_CHECKED;

// Bytes of an array of the part of a rank; `bytes` 0: none.
typedef struct tarn__optim_fetch {
  size_t param, first, bytes;
  tarn__part_array array;
  int rank;
} tarn__optim_fetch;

// The next piece that rank 0 must fetch to read bytes [first, first + bytes) of an array of a whole parameter; it
// begins at `first` and may be rank 0's own.
tarn__optim_fetch tarn__optim_share_find(const tarn__optim_share *share, size_t param, tarn__part_array array,
                                         size_t first, size_t bytes);
// All ranks make this call with the same piece; rank 0 gets it in *to, which the others ignore.
tarn_status tarn__optim_share_fetch(tarn__optim_share *share, void *to, const tarn__optim_fetch *fetch) TARN_CHECKED;

#endif

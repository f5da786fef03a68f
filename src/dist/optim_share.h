// What ranks do together whose optimisers are parts of one (optim_parts.h): the norm of the gradients, the new weights,
// AutoFreeze's norms, and what rank 0 needs of the others to write a checkpoint.
#ifndef TARN_DIST_OPTIM_SHARE_H
#define TARN_DIST_OPTIM_SHARE_H

#include "comm/comm.h"
#include "device/step_numbers.h"
#include "dist/optim_parts.h"
#include "optim/param_table.h"
#include "store/checkpoint.h"

// Zero-initialise or open. Zero is that of one rank alone.
typedef struct tarn__optim_share {
  tarn__comm *comm;
  tarn__optim_parts parts;
  tarn__param_table table, helpers;  // this rank's parts of the model's parameters and of its helpers
  bool shares;                       // moments and updates, not the norm alone
  char *room;                        // [ranks, each]: what is sent at a time of parameters of few bytes
  size_t each;
  struct tarn__optim_place *places;  // [ranks]
  int64_t *first;                    // [ranks + 1]
} tarn__optim_share;

// Whether the ranks of a training share moments and updates.
bool tarn__optim_shares(const tarn_config *config, int ranks);
// Bytes of the room.
size_t tarn__optim_share_bytes(const tarn_config *config, int ranks);

// Takes the memory of the parts if the model says shares_optimiser; it has its own. With one rank nothing is opened.
// The model and the communicator must outlive it.
tarn_status tarn__optim_share_open(tarn__optim_share *share, tarn__comm *comm, const tarn__model *model) TARN_CHECKED;
void tarn__optim_share_close(tarn__optim_share *share);

// The norms of the gradients of the model and of its helpers, of several ranks: each squares its parts, and the sums
// are added in the order of the ranks. The parts are refreshed first. The device computes in *numbers.
tarn_status tarn__optim_share_norms(tarn__optim_share *share, double *model, double *helpers,
                                    tarn__step_numbers *numbers, int threads) TARN_CHECKED;

// After it each rank has the new values of all parameters that move (optim/adam.h), as the kernels read them.
tarn_status tarn__optim_share_weights(tarn__optim_share *share) TARN_CHECKED;

// Adds the absolute values of AutoFreeze's sums of parameter `index` to *norm, one after the other as one rank does,
// and clears the sums.
tarn_status tarn__optim_share_absolute(tarn__optim_share *share, size_t index, double *norm) TARN_CHECKED;

// Bytes of an array of the part of a rank; `bytes` 0: none.
typedef struct tarn__optim_fetch {
  size_t param, first, bytes;
  tarn__part_array array;
  int rank;
} tarn__optim_fetch;

// The next piece that rank 0 has to ask for to read bytes [first, first + bytes) of an array of a whole parameter,
// which begins at `first` and may be its own.
tarn__optim_fetch tarn__optim_share_find(const tarn__optim_share *share, size_t param, tarn__part_array array,
                                         size_t first, size_t bytes);
// All ranks make this call with the same piece; rank 0 gets it in *to, which is not looked at elsewhere.
tarn_status tarn__optim_share_fetch(tarn__optim_share *share, void *to, const tarn__optim_fetch *fetch) TARN_CHECKED;

#endif

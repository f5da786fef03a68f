// The inside of tarn_dynamics: a model, or a reservoir alone, and what of it is iterated.
#ifndef TARN_DYNAMICS_DYNAMICS_H
#define TARN_DYNAMICS_DYNAMICS_H

#include "dynamics/cell.h"
#include "store/checkpoint.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/states.h"

struct tarn_dynamics {
  tarn_dynamics_options options;  // with their texts, which are the caller's until opening is over
  tarn_dynamics_info info;
  tarn__checkpoint *checkpoint;  // NULL: a reservoir alone
  void *packed;                  // weights of products in the order in which they are read, in the memory of the device
  size_t packed_bytes;
  tarn_states *states;  // the texts as tokens
  tarn__cell_map cell;  // of a recurrence
  tarn__arena texts;    // of info
};

// A checkpoint, or a description with random weights, which is then no file: path is that of the description.
tarn_status tarn__dynamics_open_source(tarn__checkpoint **checkpoint, bool *trained, const char *path,
                                       const tarn_dynamics_options *options) TARN_CHECKED;

// Chooses what is iterated, and says so in info.
tarn_status tarn__dynamics_choose(tarn_dynamics *dynamics) TARN_CHECKED;

// Where `count` numbers lie, whose order changes.
void tarn__dynamics_spread_of(tarn_dynamics_spread *spread, double *values, int64_t count);

// The tokens of the texts, all together: the caller frees *memory, where the parts lie that are made for it.
tarn_status tarn__dynamics_pack(const tarn_dynamics *dynamics, tarn__packed *packed, void **memory) TARN_CHECKED;

// The iterations that options.iterations stands for. Fails with USAGE where there cannot be so many.
tarn_status tarn__dynamics_iterations(const tarn_dynamics *dynamics, int64_t *iterations) TARN_CHECKED;

#endif

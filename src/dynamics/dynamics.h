// The inside of tarn_dynamics: a model, or a reservoir alone, and the iterated map.
#ifndef TARN_DYNAMICS_DYNAMICS_H
#define TARN_DYNAMICS_DYNAMICS_H

#include "dynamics/cell.h"
#include "store/checkpoint.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/states.h"

struct tarn_dynamics {
  tarn_dynamics_options options;  // with their texts, which belong to the caller until opening is done
  tarn_dynamics_info info;
  tarn__checkpoint *checkpoint;  // NULL: a reservoir alone
  bool shared;                   // it is another's, who closes it
  bool planned;                  // its model has no values yet, so that nothing can be run
  void *packed;                  // weights of products in reading order, in the memory of the device
  size_t packed_bytes;
  tarn_states *states;  // the texts as tokens
  tarn__cell_map cell;  // of a recurrence
  tarn__arena texts;    // of info
};

// Opens a checkpoint, or a description with random weights, without a file: path is that of the description.
tarn_status tarn__dynamics_open_source(tarn__checkpoint **checkpoint, bool *trained, const char *path,
                                       const tarn_dynamics_options *options) TARN_CHECKED;

// As tarn_dynamics_open() for a model that stays open, of the precision's type. `planned`: only to be checked.
tarn_status tarn__dynamics_open_checkpoint(tarn_dynamics **dynamics, tarn__checkpoint *checkpoint, bool planned,
                                           const tarn_dynamics_options *options) TARN_CHECKED;

// Fails as tarn_dynamics_run() would for the options, the sentences, an op without a rule for perturbations, or the
// memory that is allowed. For models that are planned.
tarn_status tarn__dynamics_check(const tarn_dynamics *dynamics) TARN_CHECKED;

// Chooses what is iterated, and describes it in info.
tarn_status tarn__dynamics_choose(tarn_dynamics *dynamics) TARN_CHECKED;

// The distribution of `count` numbers, whose order changes.
void tarn__dynamics_spread_of(tarn_dynamics_spread *spread, double *values, int64_t count);

// The tokens of all texts: the caller frees *memory, which holds the parts allocated for them.
tarn_status tarn__dynamics_pack(const tarn_dynamics *dynamics, tarn__packed *packed, void **memory) TARN_CHECKED;

// The number of iterations for options.iterations. Fails with USAGE if that many are impossible.
tarn_status tarn__dynamics_iterations(const tarn_dynamics *dynamics, int64_t *iterations) TARN_CHECKED;

#endif

// Recurrent states carried from window to window of a text that is read in tracks (data/batch.h, train.carry_state).
//
// An update reads one window of every track. Each rank computes `slots` batches of it; batch k of the update is in slot
// k / ranks of rank k % ranks. There are two copies of the states: those at the beginning of the windows, which no
// batch modifies, so that a failed update leaves them intact; and those at the end, which replace them when the update
// is done. In a checkpoint a layer's states are one matrix over the tracks of all batches in the order of the update,
// so it does not depend on the number of ranks.
#ifndef TARN_TRAIN_FEATURES_CARRIED_H
#define TARN_TRAIN_FEATURES_CARRIED_H

#include "comm/comm.h"
#include "model/model.h"
#include "store/checkpoint.h"

// Zero-initialise or open.
typedef struct tarn__carried {
  const tarn__model *model;
  tarn__comm *comm;
  int64_t tracks, slots;  // tracks per batch; batches per rank and update
  char *start, *end;      // device memory: for each layer [slots, tracks, width of the layer], F32
  size_t bytes;           // of each
  // With several ranks, the states of all ranks in checkpoint order: after the last update, and of the current one.
  char *all, *next;
  char *gathered;                                               // [ranks, bytes] as received
  void *starts[TARN_CONFIG_LAYERS], *ends[TARN_CONFIG_LAYERS];  // of the current slot
  tarn__model_carried now;
  tarn__stored *stored;  // set by tarn__carried_stored()
  char (*names)[64];
} tarn__carried;

// Bytes needed.
size_t tarn__carried_bytes(const tarn__model *model, int64_t tracks, int64_t slots, int ranks);
// All states are initially 0. The model and the communicator must outlive it.
tarn_status tarn__carried_open(tarn__carried *carried, const tarn__model *model, tarn__comm *comm, int64_t tracks,
                               int64_t slots) TARN_CHECKED;
void tarn__carried_close(tarn__carried *carried);

// Call before an update; the first one of an epoch starts from zeros.
tarn_status tarn__carried_begin(tarn__carried *carried, bool epoch_begins) TARN_CHECKED;
// The states of batch number `number` of the update, which must belong to this rank; valid until the next call.
const tarn__model_carried *tarn__carried_at(tarn__carried *carried, int64_t number);
// Call on every rank when all batches of the update are computed: collects the final states of all ranks.
tarn_status tarn__carried_share(tarn__carried *carried) TARN_CHECKED;
// Call when the update is done: its final states become the initial states of the next windows.
void tarn__carried_advance(tarn__carried *carried);

// The tensors for a checkpoint, on rank 0; valid until the next update.
const tarn__stored *tarn__carried_stored(tarn__carried *carried, size_t *count);
// Loads the states from a file. Fails with DATA if one is missing or has a different number of tracks.
tarn_status tarn__carried_load(tarn__carried *carried, const tarn__safetensors *file) TARN_CHECKED;

#endif

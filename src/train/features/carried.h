// Recurrent states that go from window to window of a text that is read in tracks (data/batch.h, train.carry_state).
//
// An update reads one window of every track. Each rank computes `slots` batches of it; batch k of the update is in slot
// k / ranks of rank k % ranks. States are kept twice: those with which the windows begin, which no batch changes, so
// that an update that fails leaves them as they were, and those with which they end, which take their place when the
// update is done. In a checkpoint a layer's states are one matrix over the tracks of all batches in the order of the
// update, so it does not depend on how many ranks computed them.
#ifndef TARN_TRAIN_FEATURES_CARRIED_H
#define TARN_TRAIN_FEATURES_CARRIED_H

#include "comm/comm.h"
#include "model/model.h"
#include "store/checkpoint.h"

// Zero-initialise or open.
typedef struct tarn__carried {
  const tarn__model *model;
  tarn__comm *comm;
  int64_t tracks, slots;  // tracks of a batch; batches of a rank in an update
  char *start, *end;      // device memory: layer after layer [slots, tracks, width of the layer], F32
  size_t bytes;           // of each
  // With several ranks, the states of all as checkpoints have them: after the last update, and of the one being
  // computed.
  char *all, *next;
  char *gathered;                                               // [ranks, bytes] as they come
  void *starts[TARN_CONFIG_LAYERS], *ends[TARN_CONFIG_LAYERS];  // of the slot at hand
  tarn__model_carried now;
  tarn__stored *stored;  // by tarn__carried_stored()
  char (*names)[64];
} tarn__carried;

// Bytes that it takes.
size_t tarn__carried_bytes(const tarn__model *model, int64_t tracks, int64_t slots, int ranks);
// All states are 0. The model and the communicator must outlive it.
tarn_status tarn__carried_open(tarn__carried *carried, const tarn__model *model, tarn__comm *comm, int64_t tracks,
                               int64_t slots) TARN_CHECKED;
void tarn__carried_close(tarn__carried *carried);

// To be called before an update; the first one of an epoch begins with zeros.
tarn_status tarn__carried_begin(tarn__carried *carried, bool epoch_begins) TARN_CHECKED;
// The states of batch number `number` of the update, which must be this rank's; valid until the next call.
const tarn__model_carried *tarn__carried_at(tarn__carried *carried, int64_t number);
// To be called on every rank once all batches of the update are computed: collects the states with which all ranks end.
tarn_status tarn__carried_share(tarn__carried *carried) TARN_CHECKED;
// The update is done: what windows ended with is what the next ones begin with.
void tarn__carried_advance(tarn__carried *carried);

// The tensors of a checkpoint: on rank 0, valid until the next update.
const tarn__stored *tarn__carried_stored(tarn__carried *carried, size_t *count);
// Takes the states from a file. Fails with DATA where one is missing or is not of so many tracks.
tarn_status tarn__carried_load(tarn__carried *carried, const tarn__safetensors *file) TARN_CHECKED;

#endif

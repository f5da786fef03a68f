// Records which experts received a token in the updates since the last line of the log (ops/route.h).
#ifndef TARN_TRAIN_FEATURES_EXPERT_USE_H
#define TARN_TRAIN_FEATURES_EXPERT_USE_H

#include "comm/comm.h"
#include "model/model.h"

// Zero-initialise or open.
typedef struct tarn__expert_use {
  const tarn__model *model;
  size_t experts, routers;  // of the model; 0: none
  // [experts + routers + 1] '1' for each expert that received a token, in the order of the model's parameters, then for
  // each router that has routed any during training, else '0'. A string, as stored in checkpoints.
  char *marks;
} tarn__expert_use;

// All marks are initially clear. The model must outlive it.
tarn_status tarn__expert_use_open(tarn__expert_use *use, const tarn__model *model) TARN_CHECKED;
void tarn__expert_use_close(tarn__expert_use *use);
void tarn__expert_use_clear(tarn__expert_use *use);

// Marks the experts used by a batch, after its graph has run in training.
tarn_status tarn__expert_use_add(tarn__expert_use *use, const tarn__graph *graph) TARN_CHECKED;
// Call on every rank when all batches of an update are computed: combines the marks of all ranks.
tarn_status tarn__expert_use_share(tarn__expert_use *use, tarn__comm *comm) TARN_CHECKED;
// The number of unmarked experts of marked routers; -1: no router is marked.
int64_t tarn__expert_use_unused(const tarn__expert_use *use);
// Loads the marks of a checkpoint; NULL: it has none. Fails with DATA if they do not match the model.
tarn_status tarn__expert_use_load(tarn__expert_use *use, const char *marks, const char *file) TARN_CHECKED;

#endif

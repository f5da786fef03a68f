// Which experts got a token of the updates since the last line of the log (ops/route.h).
#ifndef TARN_TRAIN_FEATURES_EXPERT_USE_H
#define TARN_TRAIN_FEATURES_EXPERT_USE_H

#include "comm/comm.h"
#include "model/model.h"

// Zero-initialise or open.
typedef struct tarn__expert_use {
  const tarn__model *model;
  size_t experts, routers;  // of the model; 0: it has none
  // [experts + routers + 1] '1' for each expert that got a token, in the order of the model's parameters, then for each
  // router that has given any while it was trained through, else '0'. A text, as checkpoints have it.
  char *marks;
} tarn__expert_use;

// Nothing is marked. The model must outlive it.
tarn_status tarn__expert_use_open(tarn__expert_use *use, const tarn__model *model) TARN_CHECKED;
void tarn__expert_use_close(tarn__expert_use *use);
void tarn__expert_use_clear(tarn__expert_use *use);

// Marks what a batch used, after the run of its graph in training.
tarn_status tarn__expert_use_add(tarn__expert_use *use, const tarn__graph *graph) TARN_CHECKED;
// To be called on every rank once all batches of an update are computed: each marks what any has marked.
tarn_status tarn__expert_use_share(tarn__expert_use *use, tarn__comm *comm) TARN_CHECKED;
// How many experts of marked routers are not marked themselves; -1: no router is marked.
int64_t tarn__expert_use_unused(const tarn__expert_use *use);
// The marks of a checkpoint; NULL: it has none. Fails with DATA where they are not those of such a model.
tarn_status tarn__expert_use_load(tarn__expert_use *use, const char *marks, const char *file) TARN_CHECKED;

#endif

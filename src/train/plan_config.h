// The plan of a training from its description alone.
#ifndef TARN_TRAIN_PLAN_CONFIG_H
#define TARN_TRAIN_PLAN_CONFIG_H

#include "train/plan_run.h"

// The plan of tarn_plan_make(), for one of several ranks, and its sources.
typedef struct tarn__planned {
  tarn_plan plan;
  tarn__model *model;  // without memory
  tarn__shard shard;   // the training data; closed if unreadable
} tarn__planned;

// Fails like tarn_plan_make(), and leaves *planned closed. The config must outlive it.
tarn_status tarn__plan_ranks(tarn__planned *planned, const tarn_config *config, const tarn_plan_options *options,
                             int ranks) TARN_CHECKED;
void tarn__planned_close(tarn__planned *planned);

// Fails with MEMORY if the device of the model has less memory left than the training takes of it.
tarn_status tarn__plan_check_memory(const tarn_plan *plan, const tarn__model *model) TARN_CHECKED;

#endif

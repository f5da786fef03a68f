// The plan of a training from its description alone.
#ifndef TARN_TRAIN_PLAN_CONFIG_H
#define TARN_TRAIN_PLAN_CONFIG_H

#include "train/plan_run.h"

// What tarn_plan_make() plans, of one of so many ranks, and what it was made from.
typedef struct tarn__planned {
  tarn_plan plan;
  tarn__model *model;  // without memory
  tarn__shard shard;   // the training data; closed where they cannot be read
} tarn__planned;

// Fails as tarn_plan_make() does, and leaves *planned closed. The config must outlive it.
tarn_status tarn__plan_ranks(tarn__planned *planned, const tarn_config *config, const tarn_plan_options *options,
                             int ranks) TARN_CHECKED;
void tarn__planned_close(tarn__planned *planned);

#endif

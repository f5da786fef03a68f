// The plan of a whole run: the training step, and what comes on top of it while the program trains and validates.
#ifndef TARN_TRAIN_PLAN_RUN_H
#define TARN_TRAIN_PLAN_RUN_H

#include "data/shard.h"
#include "model/plan.h"

// `shard`: the training data; all zero if they cannot be read. Free with tarn_plan_close().
tarn_status tarn__plan_run(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                           const tarn__shard *shard, int threads) TARN_CHECKED;

#endif

// The plan of a whole run: the training step, and what comes on top of it while the program trains and validates.
#ifndef TARN_TRAIN_PLAN_RUN_H
#define TARN_TRAIN_PLAN_RUN_H

#include "data/shard.h"
#include "model/plan.h"

// Whether a training can update each parameter as soon as its gradient is whole, in the backward pass (graph/update.h),
// with the bits of one that updates at the end: where no update needs all gradients first (clip_norm, sums over batches
// or ranks, a feature that says so).
bool tarn__plan_updates_at_once(const tarn_config *config, int ranks);

// Whether so many threads (0: as the description says) may be asked for; fails with USAGE.
tarn_status tarn__plan_check_threads(int threads) TARN_CHECKED;

// `shard`: the training data; all zero if they cannot be read. Free with tarn_plan_close().
tarn_status tarn__plan_run(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                           const tarn__shard *shard, int threads) TARN_CHECKED;

#endif

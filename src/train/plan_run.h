// The plan of a whole run: the training step, and the additional memory of the program for training and validation.
#ifndef TARN_TRAIN_PLAN_RUN_H
#define TARN_TRAIN_PLAN_RUN_H

#include "data/shard.h"
#include "model/plan.h"

// Whether training can update each parameter in the backward pass as soon as its gradient is complete (graph/update.h),
// bit-identically to updating at the end: if no update needs all gradients first (clip_norm, sums over batches or
// ranks, a feature that requires it).
bool tarn__plan_updates_at_once(const tarn_config *config, int ranks);

// Adds what libraries of the device take beside the graph's memory.
void tarn__plan_add_workspace(tarn_plan *plan, size_t bytes);

// Checks a number of threads (0: from the description); fails with USAGE.
tarn_status tarn__plan_check_threads(int threads) TARN_CHECKED;

// `shard`: the training data; zeroed if unreadable. Free with tarn_plan_close().
tarn_status tarn__plan_run(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                           const tarn__shard *shard, int threads) TARN_CHECKED;

#endif

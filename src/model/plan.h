// The plan of one training step, for `tarn plan` and for the trainer before it takes memory.
#ifndef TARN_MODEL_PLAN_H
#define TARN_MODEL_PLAN_H

#include "model/model.h"
#include "tarn/plan.h"

// The batch to plan for.
typedef struct tarn__plan_batch {
  int64_t source_rows, target_rows;        // of the largest batch
  double source_length, target_length;     // tokens of a mean sentence, at least 1
  int64_t longest_source, longest_target;  // tokens of the longest sentence
  int64_t sentences;                       // the most of any batch; 0: as many as their mean length gives
  int64_t source_tokens;                   // of all training data; 0: unknown
} tarn__plan_batch;

// The model needs no memory of its own (tarn__model_open() is enough).
tarn_status tarn__plan_model(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                             int threads) TARN_CHECKED;

#endif

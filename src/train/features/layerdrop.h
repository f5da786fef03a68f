// LayerDrop (Fan, Grave and Joulin 2020, "Reducing Transformer Depth on Demand with Structured Dropout"): a training
// step skips each layer of a stack with probability p. Its nodes are then not in the step's graph, so it costs nothing;
// its parameters get no gradient from this batch. As in fairseq (encoder_layerdrop, decoder_layerdrop) nothing is
// rescaled, and all layers run in evaluation.
#ifndef TARN_TRAIN_FEATURES_LAYERDROP_H
#define TARN_TRAIN_FEATURES_LAYERDROP_H

#include <stdbool.h>
#include <stdint.h>

#include "task/task.h"

// Sets skip[0 .. layers - 1], a function of (seed, step, stack, layer) alone. `step` is the number of the batch, so a
// resumed training run skips the same layers.
void tarn__layerdrop_draw(bool *skip, int layers, double p, uint64_t seed, uint32_t step, tarn__stack_id stack);

// The state of the feature: the layers skipped in the current training batch.
typedef struct tarn__layerdrop {
  bool skip[TARN__STACKS][TARN_CONFIG_LAYERS];
} tarn__layerdrop;

#endif

// The training objective, per prediction.
#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) { return tally->loss / (double)tally->predictions; }

const tarn__measure tarn__measure_loss = {
    .shown = {.number = TARN__METRIC_LOSS,
              .word = "loss",
              .name = "loss",
              .axis = "loss per token (nats)",
              .less = true,
              .digits = 3,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_LOSS,
    .smoothed = true,
    .sums = of,
};

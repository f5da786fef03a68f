// Negative log-likelihood per prediction, in nats.
#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) { return tally->watched / (double)tally->predictions; }

const tarn__measure tarn__measure_nll = {
    .shown = {.number = TARN__METRIC_NLL,
              .word = "nll",
              .name = "nll",
              .axis = "nll per token (nats)",
              .less = true,
              .digits = 3,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_NLL,
    .sums = of,
};

// Mean squared error of numbers.
#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) { return tally->watched / (double)tally->predictions; }

const tarn__measure tarn__measure_mse = {
    .shown = {.number = TARN__METRIC_MSE,
              .word = "mse",
              .name = "mean squared error",
              .axis = "mean squared error",
              .less = true,
              .digits = 4,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_SQUARES,
    .sums = of,
};

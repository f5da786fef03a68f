// Pearson correlation of numbers.
#include "task/measure_entry.h"

const tarn__measure tarn__measure_pearson = {
    .shown = {.number = TARN__METRIC_PEARSON,
              .word = "pearson",
              .name = "Pearson's correlation",
              .axis = "Pearson's correlation (-1 to 1)",
              .from_zero = true,
              .digits = 4,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_NUMBERS,
    .precedence = 4,
    .rows = tarn__agreement_pearson,
};

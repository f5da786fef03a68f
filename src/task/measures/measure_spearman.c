// Spearman correlation of numbers.
#include "task/measure_entry.h"

const tarn__measure tarn__measure_spearman = {
    .shown = {.number = TARN__METRIC_SPEARMAN,
              .word = "spearman",
              .name = "Spearman's correlation",
              .axis = "Spearman's correlation (-1 to 1)",
              .from_zero = true,
              .digits = 4,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_NUMBERS,
    .rows = tarn__agreement_spearman,
};

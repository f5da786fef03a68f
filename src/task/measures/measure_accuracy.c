// Fraction of correct predictions, or of correct rows or words with classes.
#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) { return (double)tally->right / (double)tally->predictions; }

const tarn__measure tarn__measure_accuracy = {
    .shown = {.number = TARN__METRIC_ACCURACY,
              .word = "accuracy",
              .name = "accuracy",
              .axis = "accuracy (0 to 1)",
              .from_zero = true,
              .digits = 4,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_RIGHT | 1u << TARN__KEPT_CLASSES | 1u << TARN__KEPT_WORD_CLASSES,
    .precedence = 5,
    .sums = of,
    .rows = tarn__agreement_accuracy,
};

// Bits per character of the text, including line ends.
#include <math.h>

#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) {
  return tally->characters > 0 ? tally->watched / log(2.0) / (double)tally->characters : NAN;
}

const tarn__measure tarn__measure_bpc = {
    .shown = {.number = TARN__METRIC_BPC,
              .word = "bpc",
              .name = "bits per character",
              .axis = "bits per character",
              .less = true,
              .digits = 3,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_TEXT,
    .precedence = 3,
    .sums = of,
};

// Bits per byte of the text, including line ends.
#include <math.h>

#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) {
  return tally->bytes > 0 ? tally->watched / log(2.0) / (double)tally->bytes : NAN;
}

const tarn__measure tarn__measure_bpb = {
    .shown = {.number = TARN__METRIC_BPB,
              .word = "bpb",
              .name = "bits per byte",
              .axis = "bits per byte",
              .less = true,
              .digits = 3,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_TEXT,
    .precedence = 2,
    .sums = of,
};

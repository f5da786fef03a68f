// Perplexity per word, capped at the largest finite number.
#include <float.h>
#include <math.h>

#include "task/measure_entry.h"

static double of(const tarn__task_tally *tally) {
  return fmin(exp(tally->watched / (double)tally->predictions), DBL_MAX);
}

const tarn__measure tarn__measure_ppl = {
    .shown = {.number = TARN__METRIC_PPL,
              .word = "ppl",
              .name = "perplexity",
              .axis = "perplexity per token",
              .less = true,
              .derived = true,
              .digits = 2,
              .told_digits = 2},
    .of = 1u << TARN__KEPT_WORDS,
    .precedence = 1,
    .sums = of,
};

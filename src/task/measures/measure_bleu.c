// BLEU of a set that the model translates, by src/train/bleu_measure.c.
#include "task/measure_entry.h"

const tarn__measure tarn__measure_bleu = {
    .shown = {.number = TARN__METRIC_BLEU,
              .word = "bleu",
              .name = "BLEU",
              .axis = "BLEU (0 to 100)",
              .from_zero = true,
              .digits = 2,
              .told_digits = 2},
    .of = 1u << TARN__KEPT_TRANSLATIONS,
};

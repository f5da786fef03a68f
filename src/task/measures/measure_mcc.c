// Matthews correlation coefficient of classes.
#include "task/measure_entry.h"

const tarn__measure tarn__measure_mcc = {
    .shown = {.number = TARN__METRIC_MCC,
              .word = "mcc",
              .name = "Matthews correlation",
              .axis = "Matthews correlation (-1 to 1)",
              .from_zero = true,
              .digits = 4,
              .told_digits = 4},
    .of = 1u << TARN__KEPT_CLASSES,
    .rows = tarn__agreement_mcc,
};

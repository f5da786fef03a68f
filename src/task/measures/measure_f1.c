// F1 of classes, or of entities in sentences whose words have classes.
#include "task/measure_entry.h"

const tarn__measure tarn__measure_f1 = {
    .shown =
        {.number = TARN__METRIC_F1, .word = "f1", .name = "F1", .axis = "F1 (0 to 1)", .digits = 4, .told_digits = 4},
    .of = 1u << TARN__KEPT_CLASSES | 1u << TARN__KEPT_WORD_CLASSES,
    .rows = tarn__agreement_f1,
};

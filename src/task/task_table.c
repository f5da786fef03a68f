// The registry: a line per entry. Tests that bring a task of their own have this table in its place.
#include "task/task.h"

const tarn__task *const tarn__task_table[] = {
    &tarn__task_translation,      &tarn__task_language_model,  &tarn__task_masked_model,   &tarn__task_classify_encoder,
    &tarn__task_classify_decoder, &tarn__task_regress_encoder, &tarn__task_regress_decoder};
const int tarn__task_count = sizeof tarn__task_table / sizeof *tarn__task_table;

// A table while it is built, for the files that build it.
#ifndef TARN_REPORT_TABLE_BUILD_H
#define TARN_REPORT_TABLE_BUILD_H

#include "base/memory.h"
#include "tarn/results.h"

struct tarn__results_table_memory {
  tarn_results_table public;
  const tarn_results *results;
  tarn_results_options options;
  tarn__arena arena;
  tarn_results_measures *measures;
  tarn_results_row *rows;
  const char **notes;
  size_t note_capacity;
};

// Adds a line to the notes.
tarn_status tarn__table_note(struct tarn__results_table_memory *t, const char *format, ...)
    __attribute__((format(printf, 2, 3))) TARN_CHECKED;

// The finished runs may stand in one table for the metric: sets metric, less, clock and budget, or says why not.
tarn_status tarn__table_check(struct tarn__results_table_memory *t) TARN_CHECKED;

// Fills `pooled`, `seeds` and `per_seed` of all rows.
tarn_status tarn__table_significance(struct tarn__results_table_memory *t) TARN_CHECKED;

#endif

// A table while it is built, for the files that build it.
#ifndef TARN_REPORT_TABLE_BUILD_H
#define TARN_REPORT_TABLE_BUILD_H

#include "base/memory.h"
#include "tarn/lab/results.h"

enum { TARN__NAMED_RUNS = 6 };  // at most, in one note

struct tarn__results_table_memory {
  tarn_results_table public;
  const tarn_results *results;
  tarn_results_options options;
  tarn__arena arena;
  tarn_results_measures *measures;
  tarn_results_row *rows;
  const char **notes;
  size_t note_capacity;
  bool other_smoothing;  // runs differ in train.label_smoothing
  bool other_sources;    // their energy was measured in different ways
  bool other_losses;     // their validation losses are of other sentences
};

// Adds a line to the notes.
tarn_status tarn__table_note(struct tarn__results_table_memory *t, const char *format, ...)
    __attribute__((format(printf, 2, 3))) TARN_CHECKED;

// The finished runs may stand in one table for the metric: sets metric, less, clock and budget, or says why not.
tarn_status tarn__table_check(struct tarn__results_table_memory *t) TARN_CHECKED;

// Adds a note that names the runs whose test is of another checkpoint than the rule takes (tarn/checkpoint.h) or, where
// the checkpoints are gone, than that of the first such run.
tarn_status tarn__table_checkpoints(struct tarn__results_table_memory *t) TARN_CHECKED;

// Fills `judged`.
tarn_status tarn__table_verdicts(struct tarn__results_table_memory *t) TARN_CHECKED;

#endif

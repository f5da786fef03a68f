// A table under construction, for the files that build it.
#ifndef TARN_REPORT_TABLE_BUILD_H
#define TARN_REPORT_TABLE_BUILD_H

#include "base/memory.h"
#include "tarn/lab/results.h"

enum { TARN__NAMED_RUNS = 6 };  // maximum per note

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
  bool other_sources;    // their energy comes from different sources
  bool longest;          // T-hat is the time of the longest run
  // Runs are of several processors: one that ran where times are taken. NULL: all ran on one.
  const tarn_results_run *on;
  bool other_losses;       // their validation losses are on different sentences
  bool other_predictions;  // their losses are of different predictions
  bool other_decoding;     // they translate in different ways
};

// Adds a line to the notes.
tarn_status tarn__table_note(struct tarn__results_table_memory *t, const char *format, ...)
    __attribute__((format(printf, 2, 3))) TARN_CHECKED;

// Checks that the finished runs are comparable by the metric, and sets metric, less, clock and budget; otherwise fails
// with the reason.
tarn_status tarn__table_check(struct tarn__results_table_memory *t) TARN_CHECKED;

// The end of a run, by its result or by the last point of its log: times there have fewer digits, so that point may be
// slightly after the end because of rounding.
double tarn__table_end(const tarn_results_run *run);

// Whether a run ran on another processor than the one that times, energies, areas over time and memory are of.
bool tarn__table_elsewhere(const struct tarn__results_table_memory *t, size_t run);

// T-hat of a run: that of the table, or its own end if it ran elsewhere and T-hat is the time of the longest run.
double tarn__table_budget(const struct tarn__results_table_memory *t, size_t run);

// Sets `on` and `processor`, and the budget where the longest run says it, with notes.
tarn_status tarn__table_processors(struct tarn__results_table_memory *t) TARN_CHECKED;

// Adds a note with the runs whose test is of a different checkpoint than the rule selects (tarn/checkpoint.h) or, if
// the checkpoints no longer exist, than that of the first such run.
tarn_status tarn__table_checkpoints(struct tarn__results_table_memory *t) TARN_CHECKED;

// Fills `judged`.
tarn_status tarn__table_verdicts(struct tarn__results_table_memory *t) TARN_CHECKED;

#endif

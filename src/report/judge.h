// One measure over all rows of a table, as table_verdicts.c judges it, for the files that judge parts of its runs.
#ifndef TARN_REPORT_JUDGE_H
#define TARN_REPORT_JUDGE_H

#include "report/table_build.h"
#include "report/test_outputs.h"
#include "significance/verdict.h"

typedef struct tarn__judging {
  struct tarn__results_table_memory *table;
  int measure;
  size_t offset;                      // of the score in tarn_results_measures
  const tarn__test_outputs *outputs;  // NULL: a score of the log
  tarn__verdict_test test;
  bool comparable;            // the scores of all runs are comparable
  tarn_results_basis other;   // the reason, if not
  tarn__verdict_side *sides;  // (groups)
  bool *incomplete;           // (groups): runs have the score, but some lack its outputs
  bool *elsewhere;            // (groups): runs are left out, being of another processor than the measure
  double *scores;             // (runs), grouped
  const double **resampled;   // (runs), likewise
  int64_t *seeds;             // (runs), likewise
} tarn__judging;

// The score of a run; NAN: it has none.
double tarn__judging_score(const tarn__judging *w, size_t run);
// Takes the sides of all rows: the runs with the score, and of the first `seeds` of the sweep's seeds alone (0: of
// all).
void tarn__judging_collect(tarn__judging *w, size_t seeds);
// The verdict on two rows by these sides, as a single comparison.
void tarn__judging_judge(tarn_results_verdict *v, tarn__judging *w, size_t a, size_t b);

// "better", "no verdict (outputs missing)".
const char *tarn__judging_words(const tarn__judging *w, const tarn_results_verdict *v);

// table_sequential.c. The measure of the sequential design that the table judges; -1: none.
int tarn__table_sequential_measure(const struct tarn__results_table_memory *t);
// Fills `sequential` of the table. The sides are those of a look afterwards.
tarn_status tarn__table_sequential(tarn__judging *w) TARN_CHECKED;
// Makes the verdict on a row that of the design.
tarn_status tarn__table_planned(tarn_results_verdict *v, tarn__judging *w, size_t group) TARN_CHECKED;

#endif

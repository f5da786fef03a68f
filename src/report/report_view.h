// The common data of a report's parts: the comparison, with names, units and styles.
#ifndef TARN_REPORT_REPORT_VIEW_H
#define TARN_REPORT_REPORT_VIEW_H

#include "base/memory.h"
#include "report/svg_chart.h"
#include "tarn/lab/results.h"

// A configuration.
typedef struct tarn__report_entry {
  const tarn_results_group *group;
  const tarn_results_row *row;  // NULL: no finished run
  tarn__chart_label label;      // its note lists the frozen layers
} tarn__report_entry;

typedef struct tarn__report {
  const tarn_results *results;
  const tarn_results_table *table;
  const char *title;
  const char *score;                   // the display name of the metric: "validation BLEU"
  int decimals;                        // of the metric
  const char *test_score;              // "test accuracy": the measure for tests with labels and of texts
  int test_decimals;                   // of test_score
  bool has_test;                       // at least one run has been tested
  tarn_results_judged_measure tested;  // the test shown in figures
  bool has_bleu;                       // at least one run has a test BLEU
  const char *test;                    // the test's score: "test BLEU", or "BLiMP (%)" if runs have only that
  // Times are shown in minutes, or in seconds if T-hat is below five minutes.
  double unit;                  // seconds
  const char *unit_name;        // "minutes"
  const char *unit_mark;        // "min"
  const char *budget;           // T-hat with its unit: "90 minutes"
  const char *origin;           // of all runs: corpus, seeds, dates, processor, version; shown under each figure
  const char *date;             // the latest day on which a run ended, "2026-11-23"; NULL: unknown
  tarn__report_entry *entries;  // (count), in the order of the groups
  size_t count;
  const tarn__report_entry *baseline;
  tarn__arena arena;   // of all texts
  tarn_status status;  // of the first failure; texts made after one are ""
} tarn__report;

// `view` is zero. Keeps `results` and `table`, which must stay valid.
tarn_status tarn__report_view_open(tarn__report *view, const tarn_results *results, const tarn_results_table *table,
                                   const char *title) TARN_CHECKED;
void tarn__report_view_close(tarn__report *view);

// A text with the lifetime of the view.
const char *tarn__report_text(tarn__report *view, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Formatted numbers, with a dash if unknown: a value; mean and deviation times 1 / `unit`.
const char *tarn__report_number(tarn__report *view, double value, int decimals);
const char *tarn__report_spread(tarn__report *view, const tarn_results_statistic *statistic, double unit, int decimals);

// "+0.83", with a typographic minus sign.
const char *tarn__report_signed(tarn__report *view, double value, int decimals);

// A score with verdicts: its name, and the decimals of its values.
const char *tarn__report_judged(tarn__report *view, tarn_results_judged_measure measure, int *decimals);
// Whether rows other than the baseline have a known difference.
bool tarn__report_has_verdicts(const tarn__report *view, tarn_results_judged_measure measure);
// A difference in words: "+1.03 [+0.50, +1.59], p = 0.010", or the known part of it.
const char *tarn__report_difference(tarn__report *view, const tarn_results_verdict *verdict, int decimals);

// The test score of a configuration, as named by `test`.
const tarn_results_statistic *tarn__report_test(const tarn__report *view, const tarn_results_row *row);

// The first run of a configuration with the data: the first run of a sweep may not have started, or may have failed
// early. NULL: none.
typedef bool (*tarn__report_has)(const tarn_results_run *run);
bool tarn__report_has_config(const tarn_results_run *run);
bool tarn__report_has_sizes(const tarn_results_run *run);
const tarn_results_run *tarn__report_first(const tarn__report *view, const tarn_results_group *group,
                                           tarn__report_has has);

// "encoder 1 3 5 7 of 8 frozen", "no layer frozen, LayerDrop 0.2", ...
const char *tarn__report_frozen(tarn__report *view, const tarn_results_group *group);

// Fills view->origin.
tarn_status tarn__report_origin(tarn__report *view) TARN_CHECKED;
// How many runs are behind the spreads in a figure. Zero-initialise and add each model's number of runs.
typedef struct tarn__report_runs {
  size_t least, most;  // of those with a spread; 0: none has one
  bool some;           // some models have a single run, and so no spread
} tarn__report_runs;
void tarn__report_add_runs(tarn__report_runs *runs, size_t count);
// An explanation of error bars, in a sentence about `what`, "The band".
const char *tarn__report_bars(tarn__report *view, const char *what, const tarn__report_runs *runs);

// " `What` of the runs on AMD EPYC (avx512_bf16, 1 thread) alone." where runs are of several processors, else "".
const char *tarn__report_processor(tarn__report *view, const char *what);

// A display name for a name in the log: "valid/bleu" is "validation BLEU".
const char *tarn__report_score(tarn__report *view, const char *name);
int tarn__report_decimals(const char *name);

#endif

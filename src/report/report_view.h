// What the parts of a report share: the comparison, with names, units and looks settled once.
#ifndef TARN_REPORT_REPORT_VIEW_H
#define TARN_REPORT_REPORT_VIEW_H

#include "base/memory.h"
#include "report/svg_chart.h"
#include "tarn/lab/results.h"

// A configuration.
typedef struct tarn__report_entry {
  const tarn_results_group *group;
  const tarn_results_row *row;  // NULL: no run of it has finished
  tarn__chart_label label;      // its note says which layers are frozen
} tarn__report_entry;

typedef struct tarn__report {
  const tarn_results *results;
  const tarn_results_table *table;
  const char *title;
  const char *score;                   // the metric in words: "validation BLEU"
  int decimals;                        // of the metric
  const char *test_score;              // "test accuracy": what tests with labels and of texts are compared by
  int test_decimals;                   // of it
  bool has_test;                       // some run has been tested
  tarn_results_judged_measure tested;  // the test that figures show
  bool has_bleu;                       // some run has a test BLEU
  const char *test;                    // what tests give: "test BLEU", or "BLiMP (%)" where runs have that alone
  // Times are shown in minutes, or in seconds where T-hat is below five minutes.
  double unit;                       // seconds
  const char *unit_name;             // "minutes"
  const char *unit_mark;             // "min"
  const char *budget;                // T-hat with its unit: "90 minutes"
  const char *origin;                // of all runs: corpus, seeds, dates, processor, version; stands under each figure
  const char *date;                  // the last day on which a run ended, "2026-11-23"; NULL: no run says it
  size_t spread_least, spread_most;  // over how many finished runs of a model spreads are; 0: of none
  bool spread_some;                  // some models have one run, and so no spread
  tarn__report_entry *entries;       // (count), in the order of the groups
  size_t count;
  const tarn__report_entry *baseline;
  tarn__arena arena;   // of all texts
  tarn_status status;  // of the first failure; texts made after one are ""
} tarn__report;

// `view` is zero. Keeps `results` and `table`, which must stay.
tarn_status tarn__report_view_open(tarn__report *view, const tarn_results *results, const tarn_results_table *table,
                                   const char *title) TARN_CHECKED;
void tarn__report_view_close(tarn__report *view);

// A text that lives as long as the view.
const char *tarn__report_text(tarn__report *view, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Numbers as they are shown, with a dash for what is not known: a value; mean and deviation times 1 / `unit`.
const char *tarn__report_number(tarn__report *view, double value, int decimals);
const char *tarn__report_spread(tarn__report *view, const tarn_results_statistic *statistic, double unit, int decimals);

// "+0.83", with a true minus sign.
const char *tarn__report_signed(tarn__report *view, double value, int decimals);

// A score that verdicts are about: its name, and the decimals of its values.
const char *tarn__report_judged(tarn__report *view, tarn_results_judged_measure measure, int *decimals);
// Whether rows other than the baseline have a difference to tell of.
bool tarn__report_has_verdicts(const tarn__report *view, tarn_results_judged_measure measure);
// What is known of a difference, in words: "+1.03 [+0.50, +1.59], p = 0.010", as much of it as there is.
const char *tarn__report_difference(tarn__report *view, const tarn_results_verdict *verdict, int decimals);

// The test score of a configuration that `test` names.
const tarn_results_statistic *tarn__report_test(const tarn__report *view, const tarn_results_row *row);

// The first run of a configuration that has something: the first of a sweep may not have begun, or have failed before
// it had anything. NULL: no run has it.
typedef bool (*tarn__report_has)(const tarn_results_run *run);
bool tarn__report_has_config(const tarn_results_run *run);
bool tarn__report_has_sizes(const tarn_results_run *run);
const tarn_results_run *tarn__report_first(const tarn__report *view, const tarn_results_group *group,
                                           tarn__report_has has);

// "encoder 1 3 5 7 of 8 frozen", "no layer frozen, LayerDrop 0.2", ...
const char *tarn__report_frozen(tarn__report *view, const tarn_results_group *group);

// Fills view->origin and view->spread_*.
tarn_status tarn__report_origin(tarn__report *view) TARN_CHECKED;
// What error bars are, in a sentence about `what`, "The band".
const char *tarn__report_bars(tarn__report *view, const char *what);

// A name of the log in words: "valid/bleu" is "validation BLEU".
const char *tarn__report_score(tarn__report *view, const char *name);
int tarn__report_decimals(const char *name);

#endif

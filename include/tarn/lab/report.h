// A report of a comparison: what tarn/lab/results.h has read and computed, as a page to look at and as files for a
// paper.
//
//   tarn_results_open(&results, paths, count), tarn_results_compare(&table, results, NULL);
//   tarn_report_options options;
//   tarn_report_default(&options);
//   options.output = "report";
//   status = tarn_report_write(results, table, &options);
//
// Files of the folder:
//   report.html       the whole report; needs no other file, no network and no script; light, dark, and for print
//   report.md         summary, tables and figures
//   report.tex        the tables and figures, for \input with the packages booktabs and graphicx
//   results.csv       one line a configuration: every measure as mean, standard deviation and number of runs
//   runs.csv          one line a run, failed ones included
//   figures/NAME.svg  each figure
//   figures/NAME.pdf  the same, by tarn_report_write_pdf()
#ifndef TARN_LAB_REPORT_H
#define TARN_LAB_REPORT_H

#include "tarn/export.h"
#include "tarn/lab/results.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_report_options {
  const char *output;  // folder; made with those above it where it does not exist
  const char *title;   // NULL: the sweep's name, or the number of configurations (default)
} tarn_report_options;

TARN_API void tarn_report_default(tarn_report_options *options);

// Writes all files, each atomically; report.html comes last. Files of an earlier report with the same names are
// replaced, others in the folder stay. Fails with USAGE (no output), IO or MEMORY.
TARN_API tarn_status tarn_report_write(const tarn_results *results, const tarn_results_table *table,
                                       const tarn_report_options *options) TARN_CHECKED;

// Writes the figures as PDF too, each atomically, for report.tex. Fails with UNSUPPORTED, writing nothing, if the
// library was built without librsvg or librsvg-2.so.2 cannot be found; else like tarn_report_write(). If librsvg runs
// out of memory, GLib ends the process.
TARN_API tarn_status tarn_report_write_pdf(const tarn_results *results, const tarn_results_table *table,
                                           const tarn_report_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

// Measurements of one run.
#ifndef TARN_REPORT_MEASURES_H
#define TARN_REPORT_MEASURES_H

#include "tarn/lab/results.h"

// All unknown.
void tarn__measures_blank(tarn_results_measures *measures);

// Whether T-hat is the run's own limit, at which it ended. Its last validation then counts as that at T-hat, although
// the last update ended a little later.
bool tarn__measures_ends_at(const tarn_results_run *run, double budget);

// The scored set whose name is the prefix of a score, such as "test/bleu"; NULL: none.
const tarn_results_set *tarn__results_set_of(const tarn_results_run *run, const char *score);

// The update of the last computation of exponents up to T-hat; -1: there is none. A line without an exponent counts: an
// exponent of an earlier update is not that of the end.
int64_t tarn__measures_exponent_step(const tarn_results_run *run, double budget);

// The value of a series at an update; NAN: it has none.
double tarn__measures_at(const tarn_results_run *run, const char *name, int64_t step);

// Measures a finished run that has the series; see tarn_results_measures. Fails with DATA (no point at time 0 for a
// score that needs it) or NUMERIC.
tarn_status tarn__measures_of(tarn_results_measures *measures, const tarn_results_run *run,
                              const tarn_results_series *series, double budget) TARN_CHECKED;

#endif

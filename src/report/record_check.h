// What a record takes of a sweep, decided and checked before anything is written.
#ifndef TARN_REPORT_RECORD_CHECK_H
#define TARN_REPORT_RECORD_CHECK_H

#include "base/status.h"
#include "tarn/lab/results.h"
#include "tarn/score.h"

typedef enum tarn__record_fate {
  TARN__RECORD_ADD,
  TARN__RECORD_KEPT,      // the record has this run
  TARN__RECORD_DIFFERS,   // the record has another result of it
  TARN__RECORD_UNTESTED,  // finished without the sweep's test
  TARN__RECORD_MISSING,   // not over
  TARN__RECORD_FATES
} tarn__record_fate;

// Zero-initialise.
typedef struct tarn__record_plan {
  tarn_results *results;     // of the sweep
  tarn_results *recorded;    // of the record; NULL: there is none yet
  tarn__record_fate *fates;  // (results->run_count)
} tarn__record_plan;

// Failures as those of tarn_record().
tarn_status tarn__record_plan_open(tarn__record_plan *plan, const char *sweep, const char *record) TARN_CHECKED;
void tarn__record_plan_close(tarn__record_plan *plan);

// "VARIANT/seed-N" of a sweep's run, within its path.
const char *tarn__record_name(const tarn_results_run *run);

// The statistics of the translations of a run, which must give the score of its test.json; the caller closes them.
// NULL: it has no translations.
tarn_status tarn__record_sentences(tarn_statistics **statistics, const tarn_results_run *run) TARN_CHECKED;

#endif

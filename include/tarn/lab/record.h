// Records of sweeps: all that comparisons need of finished runs, as small text without weights, so that results can be
// kept in a repository and verdicts recomputed from them, and sweeps continue on another machine.
//
// A record is a sweep's folder with sweep.json, sweep.yaml and base.yaml, and of every run that is over config.yaml,
// log.jsonl, result.json, test.json and test.pairs. test.bleu, counts of words and n-grams for every sentence, stands
// in place of the translations (test.hyp) and of the references, which are nowhere in a record: BLEU and its verdicts
// are computed from them, chrF is not. tarn_results_open() reads a record like any sweep, and a sweep takes its runs by
// --reuse (tarn/lab/sweep.h).
#ifndef TARN_LAB_RECORD_H
#define TARN_LAB_RECORD_H

#include <stddef.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What tarn_record() did with the runs of a sweep.
typedef struct tarn_record_summary {
  size_t added;      // written to the record; in place of a failed run if that was there
  size_t kept;       // in the record already, and equal
  size_t differing;  // in the record already with another result: of another machine; the record keeps its own
  size_t untested;   // finished but not yet tested; left out
  size_t missing;    // not begun or not over; left out
} tarn_record_summary;

// Writes the runs of a sweep that are over to the record in the folder `record`, which is made or extended; its file
// `lock` is for the time of the call. A call that was killed is completed by the next one. `summary` may be NULL.
//
// Everything is checked before anything is written. Fails, naming the run or the key, with
// - USAGE: `sweep` is no sweep's folder, or `record` is one; the record is of another baseline, budget, clock, test or
//   configuration, or has a variant that the sweep lacks;
// - DATA: a run of a later version of the program; a log or configuration that is not the training's (an accepted log
//   included); a run trained or validated on other data than others of its variant; translations that do not give the
//   score of test.json;
// - BUSY: another process writes this record; IO (references that are gone included), MEMORY.
TARN_API tarn_status tarn_record(tarn_record_summary *summary, const char *sweep, const char *record) TARN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif

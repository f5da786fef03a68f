// Whether the log of a run is the one that its training wrote.
//
// A checkpoint that a training goes on from knows how long log.jsonl was when it was written, and the hash of these
// bytes; result.json knows the same of the whole log of a run that is over. A log that lost lines or was edited since
// then shows another curve than the training's. `tarn train --resume` refuses it, or goes on with --accept-log and
// leaves a mark, which is a line of the log itself:
//   {"kind": "log_accepted", "step": N, "time": T, "message": "why it does not fit"}
#ifndef TARN_STORE_LOG_CHECK_H
#define TARN_STORE_LOG_CHECK_H

#include "base/status.h"
#include "run/log_sum.h"

#define TARN__LOG_ACCEPTED "log_accepted"  // "kind" of the mark

typedef enum tarn__log_state {
  TARN__LOG_UNKNOWN,  // nothing there says how the log was: a run of an older version, or without its last checkpoint
  TARN__LOG_WHOLE,    // it is as it was written
  TARN__LOG_CHANGED   // it lost lines or was edited
} tarn__log_state;

typedef struct tarn__log_check {
  tarn__log_state state;
  char why[TARN__LOG_WHY];  // CHANGED: as of tarn__log_compare(), else ""
  int64_t accepted;         // update at which the training first went on with a log that did not fit; -1: it never did
  char accepted_why[TARN__LOG_WHY];  // why it did not fit then, else ""
} tarn__log_check;

// Checks the log of a run directory, over or not, also one at which a training is at work. Reads the log, result.json
// and the header of the last checkpoint; files that cannot be made sense of make UNKNOWN, as missing ones do. Fails
// with IO or MEMORY.
tarn_status tarn__log_check_run(tarn__log_check *check, const char *folder) TARN_CHECKED;

#endif

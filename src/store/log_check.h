// Whether the log of a run is the one that its training wrote.
//
// A checkpoint for resuming records the length of log.jsonl when it was written, and the hash of these bytes;
// result.json records the same for the whole log of a finished run. A log that lost lines or was edited since then does
// not show the training's curve. `tarn train --resume` refuses it, or continues with --accept-log and leaves a mark, a
// line in the log:
//   {"kind": "log_accepted", "step": N, "time": T, "message": "why it does not fit"}
#ifndef TARN_STORE_LOG_CHECK_H
#define TARN_STORE_LOG_CHECK_H

#include "base/status.h"
#include "run/log_sum.h"

#define TARN__LOG_ACCEPTED "log_accepted"  // "kind" of the mark

typedef enum tarn__log_state {
  TARN__LOG_UNKNOWN,  // nothing is recorded about the log: a run of an older version, or without its last checkpoint
  TARN__LOG_WHOLE,    // it is unchanged
  TARN__LOG_CHANGED   // it lost lines or was edited
} tarn__log_state;

typedef struct tarn__log_check {
  tarn__log_state state;
  char why[TARN__LOG_WHY];  // CHANGED: from tarn__log_compare(), else ""
  int64_t accepted;         // update at which the training first continued with a log that did not match; -1: never
  char accepted_why[TARN__LOG_WHY];  // why it did not match then, else ""
} tarn__log_check;

// Checks the log of a run directory, finished or not, even during a training. Reads the log, result.json and the header
// of the last checkpoint; unreadable files give UNKNOWN, like missing ones. Fails with IO or MEMORY.
tarn_status tarn__log_check_run(tarn__log_check *check, const char *folder) TARN_CHECKED;

#endif

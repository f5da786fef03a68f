// The log of a run: log.jsonl, one JSON object per line, each with "kind" ("train", "valid") and "step".
#ifndef TARN_RUN_RUN_LOG_H
#define TARN_RUN_RUN_LOG_H

#include <jansson.h>

#include "base/status.h"
#include "run/event_file.h"
#include "run/log_sum.h"

// Zero-initialise with both fd = -1, or open.
typedef struct tarn__run_log {
  int fd;
  char *path;
  tarn__log_sum sum;          // of the whole file
  double validation_seconds;  // duration of the last validation when it was opened; 0: none
  tarn__event_file events;    // the same for TensorBoard, if it is open
} tarn__run_log;

// The state of a training as far as its log is concerned.
typedef struct tarn__run_log_place {
  int64_t update;           // optimiser steps done
  int64_t validated;        // update of the last validation; 0: none yet
  bool at_start;            // the untrained model was validated
  const char *const *sets;  // [set_count] names of the scored sets
  const int64_t *scored;    // [set_count] 1 + the update of the set's last score; 0: none yet
  int32_t set_count;
  int64_t measured;   // 1 + the update of the last line of exponents; 0: none yet
  tarn__log_sum log;  // of the log at that time; zero if unknown
} tarn__run_log_place;

// Opens the log for appending and first cuts it back to `at`, so that the log of a resumed run equals that of an
// uninterrupted one: removes everything after at->log, which must match, or, if that is unknown, records of later steps
// and an incomplete line. With `events`, a folder, every record also goes to a new event file there; the file starts
// with `config` (run/event_file.h) and the records of the training's step, or with the whole log if the folder has no
// event file yet.
tarn_status tarn__run_log_open(tarn__run_log *log, const char *path, const tarn__run_log_place *at, const char *events,
                               const tarn__message *config) TARN_CHECKED;
// Adds a record, whose reference is taken over (NULL: memory had run out), and returns its text, to be freed with
// free(). The whole line is written or the call fails; then the file may end within it.
tarn_status tarn__run_log_add(tarn__run_log *log, json_t *record, char **line) TARN_CHECKED;
// Syncs the log to disk, so that a checkpoint may record its length. If its file was removed or replaced since it was
// opened, it is written again, with a warning.
tarn_status tarn__run_log_sync(tarn__run_log *log) TARN_CHECKED;
void tarn__run_log_close(tarn__run_log *log);

#endif

// The log of a run: log.jsonl, one JSON object a line, each with "kind" ("train", "valid") and "step".
#ifndef TARN_TRAIN_RUN_LOG_H
#define TARN_TRAIN_RUN_LOG_H

#include <jansson.h>

#include "base/status.h"
#include "store/checkpoint.h"
#include "train/event_file.h"

// Zero-initialise with both fd = -1, or open.
typedef struct tarn__run_log {
  int fd;
  char *path;
  tarn__log_sum sum;          // of all that is in the file
  double validation_seconds;  // that the last validation in it took when it was opened; 0: there is none
  tarn__event_file events;    // the same for TensorBoard, if it is open
} tarn__run_log;

// Opens the log for additions and first cuts it back to where `progress` stands, so that the log of a resumed run is
// that of a run that went through: what lies behind progress->log goes, which must fit, or, where that is not known,
// records of later steps and a line that a kill cut off. With `events`, a folder,
// every record goes to a new event file there as well; the file starts with the records of the step that progress
// stands at, or with all of the log if the folder has no event file yet. The description names the scored sets.
tarn_status tarn__run_log_open(tarn__run_log *log, const char *path, const char *events, const tarn__progress *progress,
                               const tarn_config *config) TARN_CHECKED;
// Adds a record, whose reference is taken over (NULL: memory was lacking), and returns its text, to be freed with
// free(). A line reaches the file whole or the call fails; after
// that the file may end within it.
tarn_status tarn__run_log_add(tarn__run_log *log, json_t *record, char **line) TARN_CHECKED;
// Brings the log to the disk, so that a checkpoint may say how long it is. Where its file was removed or replaced since
// it was opened, it is written again, with a warning.
tarn_status tarn__run_log_sync(tarn__run_log *log) TARN_CHECKED;
void tarn__run_log_close(tarn__run_log *log);

#endif

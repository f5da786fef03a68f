// How long a training will take, before it has begun or while it runs.
#ifndef TARN_DURATION_H
#define TARN_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/plan.h"
#include "tarn/status.h"
#include "tarn/train.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a forecast was made from, the best that there was.
typedef enum tarn_duration_source {
  TARN_DURATION_RUN,        // the log of the run: updates and validations as they went so far
  TARN_DURATION_PROBE,      // two seconds of updates on the training data, with weights of zero
  TARN_DURATION_OPERATIONS  // the operations of the plan, and what a product of matrices reaches here
} tarn_duration_source;

// Times are seconds on the wall. Of a training that `train.patience` may end sooner they are the longest.
typedef struct tarn_duration {
  tarn_duration_source source;
  double seconds;            // of the whole training with its validations; negative: it has no limit that is known
  double low, high;          // what it will lie between, if the machine is as busy as now
  double seconds_left;       // RUN: from the last line of the log on; else as `seconds`
  double updates, epochs;    // in all; 0: not known
  double tokens_per_second;  // source and target tokens together
  // The part of validations in `seconds`. RUN: as they took so far; PROBE and OPERATIONS: of the loss alone, without
  // translations and other uses of the model.
  double validation_seconds;
} tarn_duration;

// "run", "probe", "operations"; NULL for another value.
TARN_API const char *tarn_duration_source_name(tarn_duration_source source);

// Forecasts the training of `options` (a description, overrides, threads), whose plan is given. `run`: a run directory
// of it, whose log is taken if it has updates; NULL: none. A probe takes the memory of the plan for as long as it runs;
// where the data cannot be read or the memory is not there, and for train.cache_frozen and ridge, whose time is not
// that of updates, the operations are counted. Fails with USAGE, DATA, IO, NUMERIC or MEMORY.
TARN_API tarn_status tarn_train_duration(tarn_duration *duration, const tarn_train_options *options,
                                         const tarn_plan *plan, const char *run) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

// How long a training will take, before it has begun or while it runs.
#ifndef TARN_LAB_DURATION_H
#define TARN_LAB_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/plan.h"
#include "tarn/status.h"
#include "tarn/train.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a forecast is based on: the best basis that there was.
typedef enum tarn_duration_source {
  TARN_DURATION_RUN,        // the log of the run: its updates and validations so far
  TARN_DURATION_PROBE,      // two seconds of updates on the training data, with weights of zero
  TARN_DURATION_OPERATIONS  // the operations of the plan, and the speed of a matrix product on this machine
} tarn_duration_source;

// Times are seconds of wall-clock time. If `train.patience` may end the training sooner, they are upper limits; if it
// has ended the run, and no override changes it, they are those of the run.
typedef struct tarn_duration {
  tarn_duration_source source;
  double seconds;            // of the whole training with its validations; negative: no limit of the training is known
  double low, high;          // interval in which `seconds` should lie, if the machine stays as busy as now
  double seconds_left;       // RUN: from the last line of the log on; else the same as `seconds`
  double updates, epochs;    // of the whole training; 0: not known
  double tokens_per_second;  // source and target tokens together
  // The part of `seconds` that is validation. RUN: from the validations so far; PROBE and OPERATIONS: computing the
  // loss only, without translations and other uses of the model.
  double validation_seconds;
} tarn_duration;

// "run", "probe", "operations"; NULL for another value.
TARN_API const char *tarn_duration_source_name(tarn_duration_source source);

// Forecasts how long the training of `options` (a description, overrides, threads), whose plan is given, will take.
// `run`: its run directory, whose log is used if it has updates; NULL: none. A probe needs the memory of the plan while
// it runs. If the data cannot be read or there is not enough memory, and for train.cache_frozen and ridge, whose time
// is not that of updates, the forecast is based on operations. Fails with USAGE, DATA, IO, NUMERIC or MEMORY.
TARN_API tarn_status tarn_train_duration(tarn_duration *duration, const tarn_train_options *options,
                                         const tarn_plan *plan, const char *run) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

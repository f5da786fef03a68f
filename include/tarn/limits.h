// What a model from a file may cost before it runs. A frozen layer is a line of text in a file and any amount of memory
// and time in a model: a checkpoint of a few kilobytes can ask for a matrix of gigabytes that takes hours to compute.
//
// So opening a model (tarn/translate.h, tarn/lm.h, tarn/generate.h, tarn_checkpoint_export() and so on, and a
// training's train.init_from) counts first what its frozen values take, and refuses with TARN_STATUS_MEMORY or
// TARN_STATUS_DATA what goes beyond the limits. Trained values are in the file, whose size bounds them. The limits do
// not hold for a training of a description: tarn_train_open() compares its plan with the memory there is, and resuming
// a run computes what its description says.
#ifndef TARN_LIMITS_H
#define TARN_LIMITS_H

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_limits {
  // Steps of arithmetic that computing the frozen values of one model may take; a processor does about one to five in a
  // nanosecond, draws of random numbers count as several. 0: no limit. [TARN_LIMITS_OPERATIONS]
  double max_operations;
  // Bytes that the computed values of one model may take, together with what computing them takes meanwhile. 0: no
  // limit but the memory that is available. [TARN_LIMITS_MEMORY]
  double max_memory;
  // Called while the frozen values of `file` are computed: how many of the operations are done. From 1e10 operations on
  // it is called at the start, with 0, and then about once a second at most; with fewer, not before two seconds have
  // passed. If anything was told, it is called at the end with all of them. Calls do not overlap, but come from any
  // thread. NULL: only the reports of tarn/progress.h. [NULL]
  void (*on_progress)(void *user, const char *file, double done, double operations);
  void *user;
} tarn_limits;

#define TARN_LIMITS_OPERATIONS 1e12
#define TARN_LIMITS_MEMORY 4e9

TARN_API void tarn_limits_default(tarn_limits *limits);
// Sets the limits of the whole process, as a copy (default: those of tarn_limits_default()). Not thread-safe; call it
// before models are opened.
TARN_API void tarn_limits_set(const tarn_limits *limits);

#ifdef __cplusplus
}
#endif
#endif

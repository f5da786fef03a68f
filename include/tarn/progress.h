// Progress of long work: reading, training a vocabulary, scoring, translating, validating, computing frozen weights,
// writing a model. The library shows nothing by itself; it reports to the receiver that the caller sets.
#ifndef TARN_PROGRESS_H
#define TARN_PROGRESS_H

#include <stdbool.h>

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// One report. The texts are valid during the call.
typedef struct tarn_progress {
  const char *what;  // the work, in English: "translating"
  const char *unit;  // what is counted, in the plural: "sentences"
  double done;       // how many of them so far
  double share;      // of the work, 0 .. 1; NAN where its end is not known (text from a pipe)
  double seconds;    // since the work began
  bool over;         // this is the last report of this work, which need not be complete: it may have failed
} tarn_progress;

// Receives a report: at most ten times a second, and one at the end if there was one before. Short work is reported as
// well; a program that shows progress may wait for `seconds` to grow. Called from any thread that does the work, but
// never from two at once. Must not call the library.
typedef void (*tarn_progress_fn)(void *user, const tarn_progress *progress);

// Sets the receiver for work that the calling thread asks for from now on (default and NULL: none). Each thread of a
// program has its own receiver, as it has its own error message. Training reports through its own events
// (tarn/train.h); its validations are reported here as well.
TARN_API void tarn_progress_set(tarn_progress_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif

// How far long work has come: reading, training a vocabulary, scoring, translating, validating, computing frozen
// weights, writing a model. The library shows nothing by itself; it tells whoever asked.
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
  double done;       // of them so far
  double share;      // of the work, 0 .. 1; NAN where its end is not known (text from a pipe)
  double seconds;    // since it began
  bool over;         // this is the last report of this work, which need not be whole: it may have failed
} tarn_progress;

// Receives a report: ten times a second at most, and in the end if there was one before. Short work is told of as well;
// whoever shows it may wait for `seconds` to grow. Comes from any thread that does the work, but never from two at
// once. May not call the library.
typedef void (*tarn_progress_fn)(void *user, const tarn_progress *progress);

// Sets who is told of the work that the calling thread asks for from now on (default: nobody; NULL: nobody again). Each
// thread of a program has its own receiver, as it has its own error message. Training tells by its own events
// (tarn/train.h), and of validation here as well.
TARN_API void tarn_progress_set(tarn_progress_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif

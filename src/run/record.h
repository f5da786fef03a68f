// Names of the scores in a record of a run's log (docs/training.md), shared by all readers of the log.
//
// A number under the key K of a record of the kind "train" is the score "train/K"; one in an object under K has its own
// key behind that ("backskip/cosine/encoder 3 R"). A key of a validation loses its "valid_", and "valid/ppl" =
// exp(valid_nll) is added; the validation of an averaged checkpoint is of the kind "average". A record of the kind
// "scored" goes by the name of its "set": "test/bleu"; "test/ppl" is added to it likewise. "kind", "step", "epoch",
// "time" and "seconds" are no scores.
#ifndef TARN_RUN_RECORD_H
#define TARN_RUN_RECORD_H

#include <jansson.h>

#include "base/status.h"

enum { TARN__SCORE_NAME = 256 };  // bytes of a score's name with its zero byte

// Receives one score; a failure ends the reading and is forwarded.
typedef tarn_status (*tarn__record_fn)(void *user, const char *name, double value);

// Passes all scores in the order of the record. Fails with DATA if there is no kind or a name is too long.
tarn_status tarn__record_scores(const json_t *record, tarn__record_fn receive, void *user) TARN_CHECKED;

#endif

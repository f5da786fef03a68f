// What all tasks share that predict the next token of a target, each token from those before it.
#ifndef TARN_TASK_NEXT_TOKEN_H
#define TARN_TASK_NEXT_TOKEN_H

#include <stdint.h>

#include "data/batch.h"

// One for each token of the target, the end of the sentence included; tarn__batcher_targets() counts them ahead.
int64_t tarn__next_token_predictions(const tarn__batch *batch);
// Of equal chances for all words.
double tarn__next_token_blind_nll(int64_t words);

#endif

// Mask-predict (Ghazvininejad et al. 2019, section 3), independent of any model: which tokens of a sentence an
// iteration masks, and the score by which the sentences of several lengths are ranked.
//
// With N tokens and T iterations, iteration t = 0 .. T - 1 masks n tokens: all of them if t = 0, else N (T - t) / T,
// rounded down, but at least one: those whose log-probabilities are lowest, of equal ones the first. The model then
// predicts all masked tokens at once; their most likely words and log-probabilities replace the old ones. Tokens that
// are not masked keep the log-probabilities with which they were last predicted.
#ifndef TARN_DECODE_MASK_PREDICT_H
#define TARN_DECODE_MASK_PREDICT_H

#include <stdint.h>

// n of iteration `iteration` of `iterations` over `length` tokens.
int64_t tarn__mask_predict_count(int64_t length, int64_t iteration, int64_t iterations);

// Writes the places of the `count` least likely tokens, ascending, to at [length], whose rest is overwritten.
void tarn__mask_predict_places(int32_t *at, const float *log_probabilities, int64_t length, int64_t count);

// The mean log-probability of the tokens.
double tarn__mask_predict_score(const float *log_probabilities, int64_t length);

#endif

// The arrangement of the tokens of a sentence: distances, cosines, effective dimension, collapse.
#ifndef TARN_DYNAMICS_TOKEN_MEASURES_H
#define TARN_DYNAMICS_TOKEN_MEASURES_H

#include <stdint.h>

typedef struct tarn__token_measures {
  double distance, cosine;  // means over pairs; cosine NAN if all tokens of a pair are zero
  double participation;     // NAN if all tokens are equal
  double collapse;          // NAN if all are zero
} tarn__token_measures;

// For x [tokens, width]; NAN for a single token. `centred` has space for as many numbers.
tarn__token_measures tarn__token_measures_of(const double *x, int64_t tokens, int64_t width, double *centred);

#endif

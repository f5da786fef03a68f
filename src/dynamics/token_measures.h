// How the tokens of a sentence lie: distances, cosines, effective dimension, collapse.
#ifndef TARN_DYNAMICS_TOKEN_MEASURES_H
#define TARN_DYNAMICS_TOKEN_MEASURES_H

#include <stdint.h>

typedef struct tarn__token_measures {
  double distance, cosine;  // means over pairs; cosine NAN if all tokens of a pair are zero
  double participation;     // NAN where all tokens are alike
  double collapse;          // NAN where all are zero
} tarn__token_measures;

// Of x [tokens, width]; NAN for a single token. `centred` has room for as many numbers.
tarn__token_measures tarn__token_measures_of(const double *x, int64_t tokens, int64_t width, double *centred);

#endif

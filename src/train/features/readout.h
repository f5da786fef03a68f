// The output layer of a language model in closed form (train.optimiser: ridge; docs/language-models.md).
//
// Ridge regression of one-hot targets on the states h gives o = W h + b, the best linear estimate of the probabilities:
// its elements sum to 1, but some are below 0. A softmax needs logits, which are taken to be linear in o, so that they
// are a matrix and a bias as in any output layer. With the words' frequencies p in the data
//   logits = log p + s (o - p) / p^a
// At the mean state, where o = p, the softmax gives the words' frequencies. a = 0 is a softmax of scaled outputs
// (temperature scaling: Guo et al., "On Calibration of Modern Neural Networks", 2017); a = s = 1 is log o to first
// order, and the first step of Newton's method for the likelihood starting from the frequencies (compare discriminant
// analysis by regression: Hastie, Tibshirani and Buja, "Flexible Discriminant Analysis by Optimal Scoring", 1994);
// a = 1/2 is o - p in units of the standard deviation of a rare word, as in the chi-squared distance. a (one of five
// values) and s maximise the likelihood of sentences held out from the regression, which are then added to it.
#ifndef TARN_TRAIN_FEATURES_READOUT_H
#define TARN_TRAIN_FEATURES_READOUT_H

#include "model/model.h"

enum {
  TARN__READOUT_WORDS = 16384,  // maximum size of the vocabulary
  TARN__READOUT_EVERY = 20,     // one sentence in this many is held out for the scale, up to the maximum
  TARN__READOUT_HELD = 16384,   // maximum of held-out tokens
};

typedef struct tarn__readout {
  double ridge;  // the penalty used
  double power, scale;
  int64_t held;  // held-out tokens
} tarn__readout;

// Fails with USAGE unless the output layer is all that is trained, in a line that names the parameter, or if the
// vocabulary is too large.
tarn_status tarn__readout_check(const tarn__model *model) TARN_CHECKED;
// Bytes needed to compute it, in addition to the workspace of a step.
size_t tarn__readout_bytes(const tarn__model *model);

// The power and scale of maximum likelihood. gaps [rows, words] are o - p, log_shares [words] log p; `loss` includes
// label smoothing. The scale is at most 1e6, which is reached only by perfectly separable data. Fails with DATA (no
// rows), NUMERIC (gaps are not finite) or MEMORY.
typedef struct tarn__calibration {
  double power, scale, loss, nll;
} tarn__calibration;
typedef struct tarn__calibration_data {
  const double *gaps, *log_shares;
  const int32_t *targets;  // [rows]
  int64_t rows, words;
  double smoothing;
} tarn__calibration_data;
tarn_status tarn__calibrate(tarn__calibration *best, const tarn__calibration_data *data) TARN_CHECKED;

#endif

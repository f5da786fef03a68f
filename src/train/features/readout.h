// The output layer of a language model in closed form (train.optimiser: ridge; docs/language-models.md).
//
// Ridge regression of one-hot targets on the states h gives o = W h + b, the best linear guess of the probabilities:
// its elements sum to 1, but some are below 0. A softmax needs logits, and these are taken linear in o, so that they
// are a matrix and a bias like any output layer's. With the words' shares p in the data
//   logits = log p + s (o - p) / p^a
// which at the mean state, where o = p, is the words' shares. a = 0 is a softmax of scaled outputs (temperature
// scaling: Guo et al., "On Calibration of Modern Neural Networks", 2017); a = s = 1 is log o to first order, and the
// first step of Newton's method for the likelihood from the shares (compare discriminant analysis by regression:
// Hastie, Tibshirani and Buja, "Flexible Discriminant Analysis by Optimal Scoring", 1994); a = 1/2 is o - p in units of
// the standard deviation of a rare word, as in the chi-squared distance. a (of five values) and s are those of the
// greatest likelihood on sentences that the regression has not seen; then these are added to it.
#ifndef TARN_TRAIN_FEATURES_READOUT_H
#define TARN_TRAIN_FEATURES_READOUT_H

#include "model/model.h"

enum {
  TARN__READOUT_WORDS = 16384,  // most tokens of the vocabulary
  TARN__READOUT_EVERY = 20,     // of so many sentences one is kept out for the scale, as far as there is room
  TARN__READOUT_HELD = 16384,   // most tokens that are kept out
};

typedef struct tarn__readout {
  double ridge;  // what the penalty came to
  double power, scale;
  int64_t held;  // tokens kept out
} tarn__readout;

// Fails with USAGE and a line that names the parameter unless the output layer is all that learns, or the vocabulary if
// it is too large.
tarn_status tarn__readout_check(const tarn__model *model) TARN_CHECKED;
// Bytes that computing it takes beside the workspace of a step.
size_t tarn__readout_bytes(const tarn__model *model);

// Power and scale of the greatest likelihood. gaps [rows, words] are o - p, log_shares [words] log p; `loss` has the
// label smoothing. The scale is 1e6 at the most, which only data that can be told apart without error reach. Fails with
// DATA (no rows), NUMERIC (gaps that are no numbers) or MEMORY.
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

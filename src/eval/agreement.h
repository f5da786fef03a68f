// How far what a model answers agrees with what is right: accuracy, F1, Matthews correlation of classes, Pearson's and
// Spearman's correlation of numbers, as scikit-learn and SciPy compute them. Each can be had of a resample of the
// answers.
#ifndef TARN_EVAL_AGREEMENT_H
#define TARN_EVAL_AGREEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum tarn__agreement_kind {
  TARN__AGREEMENT_ACCURACY,  // share of answers that are right
  // Of two classes F1 of the second one, the positive class; of more the mean of the F1 of all classes that are right
  // or were answered somewhere (macro). F1 = 2 tp / (2 tp + fp + fn), 0 where nothing is.
  TARN__AGREEMENT_F1,
  TARN__AGREEMENT_MCC,  // R_K (Gorodkin 2004), of two classes Matthews' correlation; 0 where a side has one class only
  TARN__AGREEMENT_PEARSON,   // 0 where a side is constant
  TARN__AGREEMENT_SPEARMAN,  // Pearson's correlation of ranks; equal numbers have the mean of their ranks
  TARN__AGREEMENTS
} tarn__agreement_kind;

// Zero-initialise or open; close accepts both. The answers are borrowed.
typedef struct tarn__agreement {
  size_t count;                              // answers, at least 1
  int32_t classes;                           // 0: they are numbers
  const int32_t *right_class, *found_class;  // [count] 0 .. classes-1
  const float *right_number, *found_number;  // [count] finite
  // Private.
  double *room;
  uint32_t *orders;  // of numbers: their places by rising value, of both sides
} tarn__agreement;

// Of the fields before the private ones; what they point to must stay. Fails with MEMORY.
tarn_status tarn__agreement_open(tarn__agreement *agreement) TARN_CHECKED;
void tarn__agreement_close(tarn__agreement *agreement);
// The most bytes that tarn__agreement_open() holds at any time for `count` answers.
size_t tarn__agreement_bytes(size_t count, int32_t classes);

// A measure of the answers, each as often as `times` (count) says; NULL: once. Of classes the first three, of numbers
// the others.
double tarn__agreement_of(const tarn__agreement *agreement, tarn__agreement_kind kind, const uint32_t *times);

// The measure and its 95 % bootstrap interval from `resamples` resamples (eval/bootstrap.h), 40 at least.
typedef struct tarn__agreement_interval {
  double value, low, high;
} tarn__agreement_interval;
tarn_status tarn__agreement_interval_of(tarn__agreement_interval *interval, const tarn__agreement *agreement,
                                        tarn__agreement_kind kind, int64_t resamples, uint64_t seed) TARN_CHECKED;

#endif

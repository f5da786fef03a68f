// Agreement of a model's answers with the truth: accuracy, F1, Matthews correlation of classes, Pearson's and
// Spearman's correlation of numbers, as in scikit-learn and SciPy. Each can also be computed for a resample of the
// answers.
#ifndef TARN_EVAL_AGREEMENT_H
#define TARN_EVAL_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "eval/spans.h"

// Zero-initialise or open; close accepts both. The answers are borrowed.
typedef struct tarn__agreement {
  size_t count;                              // answers, at least 1
  int32_t classes;                           // 0: they are numbers
  const int32_t *right_class, *found_class;  // [count] 0 .. classes-1
  const float *right_number, *found_number;  // [count] finite
  // For sentences whose words have classes: an answer is a sentence, and the arrays above [ends[count - 1]] hold the
  // classes of all words; those of sentence i end before ends[i]. NULL: an answer is a class.
  const int64_t *ends;
  const tarn__span_label *spans;  // [classes] with `ends`
  // Private.
  double *room;
  uint32_t *orders;  // of numbers: their indices by ascending value, for both sides
} tarn__agreement;

// Uses the public fields, whose arrays must persist. Fails with MEMORY.
tarn_status tarn__agreement_open(tarn__agreement *agreement) TARN_CHECKED;
void tarn__agreement_close(tarn__agreement *agreement);
// The most bytes that tarn__agreement_open() holds at any time for `count` answers, or sentences of words.
size_t tarn__agreement_bytes(size_t count, int32_t classes, bool words);

// A measure of the answers, each counted `times` (count) times; NULL: once.
typedef double (*tarn__agreement_measure)(const tarn__agreement *agreement, const uint32_t *times);

// For classes: the share of correct answers, or of correct words.
double tarn__agreement_accuracy(const tarn__agreement *agreement, const uint32_t *times);
// With two classes, F1 of the second one, the positive class; with more, the mean F1 of all classes that are true or
// answered somewhere (macro). F1 = 2 tp / (2 tp + fp + fn), 0 for 0 / 0. For sentences of words, F1 of their entities,
// of all types together (micro).
double tarn__agreement_f1(const tarn__agreement *agreement, const uint32_t *times);
// R_K (Gorodkin 2004), of two classes Matthews' correlation; 0 if a side has only one class.
double tarn__agreement_mcc(const tarn__agreement *agreement, const uint32_t *times);

// For numbers: Pearson's correlation, 0 if a side is constant.
double tarn__agreement_pearson(const tarn__agreement *agreement, const uint32_t *times);
// Pearson's correlation of ranks; equal numbers share their mean rank.
double tarn__agreement_spearman(const tarn__agreement *agreement, const uint32_t *times);

// The measure and its 95 % bootstrap interval from `resamples` resamples (eval/bootstrap.h), 40 at least.
typedef struct tarn__agreement_interval {
  double value, low, high;
} tarn__agreement_interval;
tarn_status tarn__agreement_interval_of(tarn__agreement_interval *interval, const tarn__agreement *agreement,
                                        tarn__agreement_measure measure, int64_t resamples, uint64_t seed) TARN_CHECKED;

#endif

// A measure: its name, its description, and its computation from the data that an evaluation keeps of a set. A task
// declares what its evaluations keep, and thereby has every measure that can be computed from one of these.
#ifndef TARN_TASK_MEASURE_ENTRY_H
#define TARN_TASK_MEASURE_ENTRY_H

#include "eval/agreement.h"
#include "tarn/measure.h"
#include "task/measure_list.h"
#include "task/tally.h"

#define TARN__MEASURE_NUMBER(NAME, word, text) TARN__METRIC_##NAME,
typedef enum tarn__metric { TARN__MEASURE_LIST(TARN__MEASURE_NUMBER) TARN__METRIC_COUNT } tarn__metric;
#undef TARN__MEASURE_NUMBER

// Data that an evaluation keeps of a set.
typedef enum tarn__kept {
  TARN__KEPT_LOSS,          // the sum of the loss
  TARN__KEPT_NLL,           // the watched quantity is the negative log-likelihood
  TARN__KEPT_WORDS,         // the same, and predictions are words
  TARN__KEPT_SQUARES,       // the watched quantity is the squared error
  TARN__KEPT_TEXT,          // characters and bytes of the text, if known
  TARN__KEPT_RIGHT,         // number of correct predictions
  TARN__KEPT_CLASSES,       // the correct and the most likely class of each row
  TARN__KEPT_WORD_CLASSES,  // the correct and the most likely class of each word of a sentence
  TARN__KEPT_NUMBERS,       // the correct number and the answer for each row
  TARN__KEPT_TRANSLATIONS,  // none: the model translates the set (train/set_measure.h)
} tarn__kept;

typedef struct tarn__measure {
  tarn_measure shown;  // its number and word are those of the list
  unsigned of;         // set of tarn__kept (1 << kept), each of which suffices to compute it
  // Among a test's measures, the one with the highest precedence is used for comparison if the table's own measure is
  // missing. 0: never.
  int precedence;
  bool smoothed;  // it depends on train.label_smoothing, so it does not compare runs with different smoothing
  // Computes it from the sums over a set. NAN: unknown.
  double (*sums)(const tarn__task_tally *tally);
  // Computes it from the classes or numbers, each weighted by `times` (NULL: 1), so that it has a bootstrap interval.
  tarn__agreement_measure rows;
} tarn__measure;

#define TARN__MEASURE_ENTRY(NAME, word, text) extern const tarn__measure tarn__measure_##word;
TARN__MEASURE_LIST(TARN__MEASURE_ENTRY)
#undef TARN__MEASURE_ENTRY

// Entry number `metric`, 0 .. TARN__METRIC_COUNT - 1.
const tarn__measure *tarn__measure_at(int metric);

// Whether a value of a measure is better than another.
bool tarn__metric_better(double value, double than, int metric);

#endif

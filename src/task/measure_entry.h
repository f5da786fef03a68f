// What a measure is: a word, what is told of it, and how it follows from what an evaluation keeps of a set. A task says
// what its evaluations keep, so that it has every measure that follows from one of these things.
#ifndef TARN_TASK_MEASURE_ENTRY_H
#define TARN_TASK_MEASURE_ENTRY_H

#include "eval/agreement.h"
#include "tarn/measure.h"
#include "task/measure_list.h"
#include "task/tally.h"

#define TARN__MEASURE_NUMBER(NAME, word, text) TARN__METRIC_##NAME,
typedef enum tarn__metric { TARN__MEASURE_LIST(TARN__MEASURE_NUMBER) TARN__METRIC_COUNT } tarn__metric;
#undef TARN__MEASURE_NUMBER

// What an evaluation keeps of a set.
typedef enum tarn__kept {
  TARN__KEPT_LOSS,          // the sum of the loss
  TARN__KEPT_NLL,           // what is watched is the negative log-likelihood
  TARN__KEPT_WORDS,         // the same, and predictions are words
  TARN__KEPT_SQUARES,       // what is watched is the squared error
  TARN__KEPT_TEXT,          // characters and bytes of the text, where they are known
  TARN__KEPT_RIGHT,         // how many predictions are right
  TARN__KEPT_CLASSES,       // the right class of each row and the likeliest one
  TARN__KEPT_WORD_CLASSES,  // the right class of each word of a sentence and the likeliest one
  TARN__KEPT_NUMBERS,       // the right number of each row and the answer
  TARN__KEPT_TRANSLATIONS,  // none: the model translates the set (train/set_measure.h)
} tarn__kept;

typedef struct tarn__measure {
  tarn_measure shown;  // its number and word are those of the list
  unsigned of;         // set of tarn__kept (1 << kept), from each of which it follows
  // By which of its measures a test is compared where it has not that of the table: the one of the highest precedence.
  // 0: by none.
  int precedence;
  bool smoothed;  // it depends on train.label_smoothing, so runs of other smoothing are not compared by it
  // From the sums over a set. NAN: it is not known.
  double (*sums)(const tarn__task_tally *tally);
  // From its classes or numbers, each as often as `times` says (NULL: once), so that it has a bootstrap interval.
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

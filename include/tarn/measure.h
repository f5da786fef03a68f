// Measures: the scores of a model. A model's task, and for some measures its vocabulary, decide which ones it has. Each
// of these can select the best checkpoint and stop a training (valid.metric), and can be used in comparisons.
#ifndef TARN_MEASURE_H
#define TARN_MEASURE_H

#include <stdbool.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Length of an array of scores, of which the first tarn_measure_count() are used. A measure's number is its index.
enum { TARN_MEASURES = 32 };

typedef struct tarn_measure {
  int number;        // its index in arrays of scores, 0 .. tarn_measure_count() - 1; never changes
  const char *word;  // in valid.metric, and after the slash in names of scores: "bleu" of "valid/bleu"
  const char *name;  // in running text: "BLEU"
  const char *axis;  // with its unit: "loss per token (nats)"
  bool less;         // less is better
  bool from_zero;    // an untrained model scores 0, so a curve may start there
  bool derived;      // computed from another measure, so it is not in the log
  int digits;        // decimals of means in comparisons
  int told_digits;   // decimals of a single value
} tarn_measure;

// The measure of a number, static like its texts; NULL: no such measure.
TARN_API const tarn_measure *tarn_measure_of(int number);
TARN_API int tarn_measure_count(void);

// The measure of a score's name, such as "valid/bleu", "valid_bleu" or "bleu"; NULL: not a measure ("train/lr").
TARN_API const tarn_measure *tarn_measure_find(const char *name);

// Whether a name written by a user is that of a score. The score "valid/bleu" is "valid_bleu" in the log, so either
// spelling is accepted everywhere: / and _ are equivalent.
TARN_API bool tarn_measure_same_name(const char *name, const char *written);

#ifdef __cplusplus
}
#endif
#endif

// Measures: what a model can be scored by. Which of them a model has is decided by what it learns and, of some, by its
// vocabulary; each of them can choose the best checkpoint and end a training (valid.metric), and be compared by.
#ifndef TARN_MEASURE_H
#define TARN_MEASURE_H

#include <stdbool.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Places of an array of scores, of which the first tarn_measure_count() are used: a measure's number is its place.
enum { TARN_MEASURES = 32 };

typedef struct tarn_measure {
  int number;        // its place in arrays of scores, 0 .. tarn_measure_count() - 1; it never changes
  const char *word;  // in valid.metric, and behind the slash in the names of scores: "bleu" of "valid/bleu"
  const char *name;  // in running text: "BLEU"
  const char *axis;  // with its unit: "loss per token (nats)"
  bool less;         // less is better
  bool from_zero;    // of a model that knows nothing it is 0, so a curve may begin there
  bool derived;      // it follows from another one, so no line of a log has it
  int digits;        // behind the point where means are compared
  int told_digits;   // and where one value is told
} tarn_measure;

// The measure of a number, static as what it points to; NULL: there is none.
TARN_API const tarn_measure *tarn_measure_of(int number);
TARN_API int tarn_measure_count(void);

// The measure of a score's name, such as "valid/bleu", "valid_bleu" or "bleu"; NULL: the score is none ("train/lr").
TARN_API const tarn_measure *tarn_measure_find(const char *name);

// Whether a name that a person wrote is that of a score. What is the score "valid/bleu" stands in the lines of a log as
// "valid_bleu", so that either spelling is right everywhere: / and _ are taken for one sign.
TARN_API bool tarn_measure_same_name(const char *name, const char *written);

#ifdef __cplusplus
}
#endif
#endif

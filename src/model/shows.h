// The graph of somebody who looks inside a model: its stacks with what is wanted of them, and what its output layer
// says.
#ifndef TARN_MODEL_SHOWS_H
#define TARN_MODEL_SHOWS_H

#include "model/model.h"

// What there is above the stacks. Words are classes where the model predicts these.
typedef enum tarn__answer {
  TARN__ANSWER_INPUT,              // what the output layer's table reads
  TARN__ANSWER_LOGITS,             // of words, or the number of regression
  TARN__ANSWER_LOG_PROBABILITIES,  // of words; regression has none
  TARN__ANSWER_TOP,                // of the likeliest words: log-probabilities
  TARN__ANSWER_TOP_IDS,            // and their numbers
  TARN__ANSWERS
} tarn__answer;

// What is wanted, and what was built.
typedef struct tarn__model_shows {
  tarn__shows *layers[TARN__STACKS];  // as tarn__model_shortcuts has them; NULL: none
  bool whole[TARN__STACKS];           // the output of a stack, behind its final norm
  unsigned answers;                   // set of 1 << tarn__answer
  int64_t best;                       // likeliest words, at most as many as there are
  tarn__tensor *stack[TARN__STACKS];
  tarn__tensor *answer[TARN__ANSWERS];  // a row a row of the last stack's side, or a sentence (tarn__task.labelled)
} tarn__model_shows;

// Appends the first `stacks` stacks of the model's task, and the output layer where answers are wanted, for which all
// stacks must be there. What was wanted and the model has is set and kept; else it is NULL.
void tarn__model_build_shows(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch, int stacks,
                             tarn__model_shows *shows);

#endif

// The graph for looking inside a model: its stacks, with the tensors that are to be shown, and its output layer.
#ifndef TARN_MODEL_SHOWS_H
#define TARN_MODEL_SHOWS_H

#include "model/model.h"

// What there is above the stacks. "Words" are classes if the model predicts classes.
typedef enum tarn__answer {
  TARN__ANSWER_INPUT,              // what the output layer's table reads
  TARN__ANSWER_LOGITS,             // of words, or the number of regression
  TARN__ANSWER_LOG_PROBABILITIES,  // of words; regression has none
  TARN__ANSWER_TOP,                // of the likeliest words: log-probabilities
  TARN__ANSWER_TOP_IDS,            // and their numbers
  TARN__ANSWERS
} tarn__answer;

// What is requested, and what was built.
typedef struct tarn__model_shows {
  tarn__shows *layers[TARN__STACKS];  // as tarn__model_shortcuts has them; NULL: none
  bool whole[TARN__STACKS];           // the output of a stack, behind its final norm
  unsigned answers;                   // set of 1 << tarn__answer
  int64_t best;                       // likeliest words, at most as many as there are
  tarn__tensor *stack[TARN__STACKS];
  tarn__tensor *answer[TARN__ANSWERS];  // a row a row of the last stack's side, or a sentence (tarn__task.labelled)
} tarn__model_shows;

// Appends the first `stacks` stacks of the model's task, and, if answers are requested, the output layer, which needs
// all stacks. Requested tensors that the model has are set and kept; the others are NULL.
void tarn__model_build_shows(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch, int stacks,
                             tarn__model_shows *shows);

#endif

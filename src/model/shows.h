// The graph for inspecting a model: its stacks, with the tensors to show, and its output layer.
#ifndef TARN_MODEL_SHOWS_H
#define TARN_MODEL_SHOWS_H

#include "model/model.h"

// The values above the stacks. "Words" are classes if the model predicts classes.
typedef enum tarn__answer {
  TARN__ANSWER_INPUT,              // the input of the output layer's table
  TARN__ANSWER_LOGITS,             // of words, or the output of regression
  TARN__ANSWER_LOG_PROBABILITIES,  // of words; regression has none
  TARN__ANSWER_TOP,                // of the likeliest words: log-probabilities
  TARN__ANSWER_TOP_IDS,            // and their numbers
  TARN__ANSWERS
} tarn__answer;

// What is requested, and what was built.
typedef struct tarn__model_shows {
  tarn__shows *layers[TARN__STACKS];  // as in tarn__model_shortcuts; NULL: none
  bool whole[TARN__STACKS];           // the output of a stack, after its final norm
  unsigned answers;                   // set of 1 << tarn__answer
  int64_t best;                       // likeliest words, at most as many as there are
  tarn__tensor *stack[TARN__STACKS];
  tarn__tensor
      *answer[TARN__ANSWERS];  // one row per row of the last stack's side, or per sentence (tarn__task.labelled)
} tarn__model_shows;

// Appends the first `stacks` stacks of the model's task, and, if answers are requested, the output layer, which needs
// all stacks. Requested tensors that the model has are set and kept; the others are NULL.
void tarn__model_build_shows(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch, int stacks,
                             tarn__model_shows *shows);

#endif

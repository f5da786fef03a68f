// The steps of a Universal Transformer (Dehghani et al. 2019): a stack whose sets of weights repeat, with embeddings of
// step and position (encoder.step_embeddings) and adaptive computation time (encoder.act_threshold).
//
// Each step t reads the state of the one before plus its embeddings, x = s + P. With adaptive computation time
// (ops/halting.h; Graves 2016) every row has a weight w from sigmoid(W x + b), and
//   s' = f(x) in a row that runs, s in a row that has halted
//   the output of the stack, before its final norm, is the sum of w s' over all steps
// All rows compute all steps, in decoding too, where the keys and values of a row that has halted are those of its
// last state, as the rows behind it see them in whole sentences.
#ifndef TARN_MODEL_UNIVERSAL_H
#define TARN_MODEL_UNIVERSAL_H

#include "model/model.h"
#include "ops/halting.h"

// Of a stack: layers of a step, and the halting unit.
void tarn__universal_declare(tarn__model_stack *stack, tarn__declare *declare, const tarn_stack *layers);

// Whether a stack of the description reads positions in every step.
bool tarn__universal_reads(const tarn_config *config);

// The run of a stack, for build.c.
typedef struct tarn__universal {
  const tarn__model *model;
  const tarn__model_stack *stack;
  const tarn__block_run *run;
  double cost;              // ponder cost of a step of a row
  tarn__tensor *positions;  // vectors of positions, made once; NULL: not yet
  tarn__tensor *rows;       // 0 .. R - 1, [R, 1]
  tarn__halted halted;      // of the current step
  tarn__tensor *state, *mean;
  int step;
} tarn__universal;

// `share`: of an update's predictions in this batch.
tarn__universal tarn__universal_of(const tarn__model *model, const tarn__model_stack *stack, const tarn__block_run *run,
                                   double share);
// Before and after layer `layer`, from 0; they do nothing within a step.
void tarn__universal_enter(tarn__universal *universal, int layer, tarn__stream *stream);
void tarn__universal_leave(tarn__universal *universal, int layer, tarn__stream *stream);

#endif

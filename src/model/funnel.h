// The blocks of a Funnel-Transformer (Dai et al. 2020; encoder.pool_after, upsample_after): between blocks the rows of
// each sentence are pooled, the mean of two neighbours each, an odd last row by itself. Behind the last block each row
// is repeated for the tokens that it is made of, and the output of the first block, before any pooling, is added.
#ifndef TARN_MODEL_FUNNEL_H
#define TARN_MODEL_FUNNEL_H

#include "model/model.h"

typedef struct tarn__funnel {
  const tarn_stack *keys;
  tarn__block_run *run;   // of the stack, whose offsets, positions and longest sentence are those of the current block
  tarn__block_run whole;  // of all rows
  int64_t sentences, rows;
  tarn__tensor *first;  // output of the first block; NULL: nothing is pooled yet
  int pooled;           // how many times
} tarn__funnel;

// Of a run over whole sentences.
tarn__funnel tarn__funnel_of(const tarn_stack *keys, tarn__block_run *run);
// Behind the layer of that depth, from 1.
void tarn__funnel_leave(tarn__funnel *funnel, int depth, tarn__stream *stream);

#endif

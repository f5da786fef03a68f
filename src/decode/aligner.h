// What finished translations attend to in their sources. The steps of a search store no weights of attention, so the
// translations are read once more, as whole sentences: the weights are those of the last layer that attends to the
// encoder's output, averaged over its heads. What a translation scores by them is the coverage penalty of Wu et al.
// (2016, equation 14): its log-probability is divided by the length as ever, and the sum over the tokens x of the
// source
//   beta * sum_x ln(min(sum_y p(y, x), 1))   where p(y, x) is the weight of x for token y of the translation
// is added, over the x with a sum above 0. The end of sentence is one of x and y, and y counts those of a prefix.
#ifndef TARN_DECODE_ALIGNER_H
#define TARN_DECODE_ALIGNER_H

#include "decode/decoder.h"
#include "decode/shown_values.h"
#include "decode/workspace.h"

// Zero-initialise.
typedef struct tarn__aligner {
  const tarn__model *model;
  int32_t eos;
  int threads;
  int64_t together;  // most tokens of a side in a batch, which a single translation may exceed
  int layer;         // of the decoder, from 1
  tarn__shows *shows;
  tarn__graph graph;
  tarn__workspace workspace;
  tarn__region region;
  tarn__shown_values values;
  tarn__arena results;
  struct tarn__align_pair *pairs;
  int32_t *ids[2], *positions[2], *offsets[2];  // of a batch: source and target
  float *weights;                               // of a sentence [heads][rows][source tokens]
  size_t pairs_room, ids_room[2], positions_room[2], offsets_room[2], weights_room;
} tarn__aligner;

typedef struct tarn__align_options {
  double coverage;  // beta, added to scores; 0: they stay
  bool weights;     // hypotheses get their `attention`, which lives until the next run
} tarn__align_options;

// Fails with USAGE if no layer of the model attends to an encoder by weights, or MEMORY. After a failure too, close.
tarn_status tarn__aligner_open(tarn__aligner *aligner, const tarn__model *model, int32_t eos, int64_t together,
                               int threads) TARN_CHECKED;
void tarn__aligner_close(tarn__aligner *aligner);

// Completes the hypotheses of the translations of items, each translations[items[i].index]; they are copied, since
// others own them. With coverage they are sorted again, and the best `keep` remain. Fails with NUMERIC or MEMORY.
tarn_status tarn__aligner_run(tarn__aligner *aligner, tarn__translation *translations, const tarn__item *items,
                              int64_t count, int64_t keep, const tarn__align_options *options) TARN_CHECKED;

#endif

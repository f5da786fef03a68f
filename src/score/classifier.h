// The inside of a classifier: a model with its graph and workspace, from batches to answers.
#ifndef TARN_SCORE_CLASSIFIER_H
#define TARN_SCORE_CLASSIFIER_H

#include "comm/share.h"
#include "data/sentence_words.h"
#include "store/checkpoint.h"
#include "tarn/classify.h"
#include "task/labelled.h"
#include "text/line_block.h"
#include "text/repair.h"

struct tarn_classifier {
  tarn_classify_options options;
  tarn__checkpoint *checkpoint;
  tarn__label_names names;
  int32_t first;  // token in front of each row; -1: none
  void *packed;   // weights of products, in the memory of the device, as the workspace
  tarn__graph graph;
  void *workspace;
  size_t workspace_bytes;
  // The lines at hand, and the rows that are computed together.
  tarn__line_block block;
  tarn__repaired repaired[2];
  bool of_words;  // labels are those of words
  tarn__sentence_pair pair;
  tarn__sentence_words words;
  int32_t *ids, *positions, *offsets, *segments, *selected, *zeros;
  size_t ids_room, positions_room, offsets_room, segments_room, selected_room, zeros_room;
  double *probabilities;  // [classes]
  int32_t *order;
  tarn__share share;  // comm NULL: this process is alone
};

// Computes a batch. *answers: log-probabilities [predictions, classes], or numbers [predictions], valid until the next
// call; *loss the sum of losses. Fails with NUMERIC if they are not finite.
tarn_status tarn__classifier_run(tarn_classifier *classifier, const tarn__batch *batch, const float **answers,
                                 double *loss) TARN_CHECKED;

// Fills in the result of a row of answers.
void tarn__classifier_tell(tarn_classifier *classifier, tarn_classify_result *result, const float *answers,
                           int64_t row);

#endif

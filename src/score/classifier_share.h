// Classification by several ranks (comm/share.h): a round sends a batch to each rank and returns its answers.
#ifndef TARN_SCORE_CLASSIFIER_SHARE_H
#define TARN_SCORE_CLASSIFIER_SHARE_H

#include "comm/share.h"
#include "score/classifier.h"

// On rank 0, between tarn__share_begin() and the round: adds the batch of a rank. Ranks without one only take part.
void tarn__classifier_put(tarn_classifier *classifier, int rank, const tarn__batch *batch);
// Each rank computes its batch. *more false: rank 0 has ended (tarn__share_end()).
tarn_status tarn__classifier_round(tarn_classifier *classifier, bool *more) TARN_CHECKED;
// On rank 0, after the round: the batch of a rank, its answers and loss, as from tarn__classifier_run(); valid until
// the next round. batch->predictions is 0 if the rank had none.
tarn_status tarn__classifier_take(tarn_classifier *classifier, int rank, tarn__batch *batch, const float **answers,
                                  double *loss) TARN_CHECKED;
// The rounds of ranks other than 0, until the end.
tarn_status tarn__classifier_help(tarn_classifier *classifier) TARN_CHECKED;

#endif

// Scoring by several ranks (comm/share.h): sentences travel to those who score them, and log-probabilities back.
#ifndef TARN_SCORE_SCORER_SHARE_H
#define TARN_SCORE_SCORER_SHARE_H

#include "comm/share.h"
#include "score/scorer.h"

// Zero-initialise or open.
typedef struct tarn__scorer_share {
  tarn__share share;
  int32_t *whose;  // rank 0's: whose each sentence is
  int64_t *lengths;
  // This rank's part.
  tarn__scorer_sentence *sentences;  // [count]
  int64_t count;
  double *log_probabilities;  // of all of them
  size_t whose_room, lengths_room, sentences_room, log_probabilities_room;
} tarn__scorer_share;

// share.comm stays NULL with one rank, and then there is nothing else to call.
tarn_status tarn__scorer_share_open(tarn__scorer_share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__scorer_share_close(tarn__scorer_share *share);

// A round: rank 0 has the sentences, as of tarn__scorer_run(), others anything. Sets this rank's part; *more false:
// there is none (tarn__share_end()).
tarn_status tarn__scorer_share_deal(tarn__scorer_share *share, const tarn__scorer_sentence *sentences, int64_t count,
                                    bool *more) TARN_CHECKED;
// The part is scored. On rank 0 the log-probabilities of all sentences are filled.
tarn_status tarn__scorer_share_collect(tarn__scorer_share *share, const tarn__scorer_sentence *sentences,
                                       int64_t count) TARN_CHECKED;

#endif

// Scoring by several ranks (comm/share.h): sends sentences to ranks and returns log-probabilities.
#ifndef TARN_SCORE_SCORER_SHARE_H
#define TARN_SCORE_SCORER_SHARE_H

#include "comm/share.h"
#include "score/scorer.h"

// Zero-initialise or open.
typedef struct tarn__scorer_share {
  tarn__share share;
  int32_t *whose;  // on rank 0: the rank of each sentence
  int64_t *lengths;
  // This rank's part.
  tarn__scorer_sentence *sentences;  // [count]
  int64_t count;
  double *log_probabilities;  // of all of them
  int32_t *best;              // of all of them, wanted or not
  bool *wanted;               // [count]
  size_t whose_room, lengths_room, sentences_room, log_probabilities_room, best_room, wanted_room;
} tarn__scorer_share;

// share.comm stays NULL with one rank, and then nothing else must be called.
tarn_status tarn__scorer_share_open(tarn__scorer_share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__scorer_share_close(tarn__scorer_share *share);

// Begins a round: rank 0 passes the sentences, as to tarn__scorer_run(), others anything. Sets this rank's part; *more
// false: there is none (tarn__share_end()).
tarn_status tarn__scorer_share_deal(tarn__scorer_share *share, const tarn__scorer_sentence *sentences, int64_t count,
                                    bool *more) TARN_CHECKED;
// Call it after scoring the part. Fills the log-probabilities, and best tokens where wanted, of all
// sentences on rank 0.
tarn_status tarn__scorer_share_collect(tarn__scorer_share *share, const tarn__scorer_sentence *sentences,
                                       int64_t count) TARN_CHECKED;

#endif

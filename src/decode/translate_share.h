// Translation by several ranks (comm/share.h): sentences are sent to ranks, which return hypotheses.
#ifndef TARN_DECODE_TRANSLATE_SHARE_H
#define TARN_DECODE_TRANSLATE_SHARE_H

#include "comm/share.h"
#include "decode/decoder.h"

// Zero-initialise or open.
typedef struct tarn__translate_share {
  tarn__share share;
  // Rank 0: the owner of each sentence, and the returned hypotheses.
  int32_t *whose;
  int64_t *lengths;
  tarn__arena hypotheses;
  // This rank's part.
  const int32_t *ids;
  const int64_t *offsets;  // [sentences + 1]
  int64_t sentences;
  tarn__translation *translations;  // [sentences]
  size_t whose_room, lengths_room, translations_room;
} tarn__translate_share;

// With one rank share.comm stays NULL, and the functions below are not used.
tarn_status tarn__translate_share_open(tarn__translate_share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__translate_share_close(tarn__translate_share *share);

// Begins a round: rank 0 passes the sentences, as for tarn__translator_run(), others pass anything. Sets ids, offsets,
// sentences and translations of this rank's part; *more is false after the last round (tarn__share_end()).
tarn_status tarn__translate_share_deal(tarn__translate_share *share, const int32_t *ids, const int64_t *offsets,
                                       int64_t sentences, bool *more) TARN_CHECKED;
// Collects the translated parts. On rank 0 all translations [sentences of all] are filled, valid until the next round.
tarn_status tarn__translate_share_collect(tarn__translate_share *share, tarn__translation *translations,
                                          int64_t sentences) TARN_CHECKED;

#endif

// Translation by several ranks (comm/share.h): sentences travel to those who translate them, and hypotheses back.
#ifndef TARN_DECODE_TRANSLATE_SHARE_H
#define TARN_DECODE_TRANSLATE_SHARE_H

#include "comm/share.h"
#include "decode/decoder.h"

// Zero-initialise or open.
typedef struct tarn__translate_share {
  tarn__share share;
  // Rank 0's: whose each sentence is, and the hypotheses that came back.
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

// share.comm stays NULL with one rank, and then there is nothing else to call.
tarn_status tarn__translate_share_open(tarn__translate_share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__translate_share_close(tarn__translate_share *share);

// A round: rank 0 has the sentences, as of tarn__translator_run(), others anything. Sets ids, offsets, sentences and
// translations of this rank's part; *more false: there is none (tarn__share_end()).
tarn_status tarn__translate_share_deal(tarn__translate_share *share, const int32_t *ids, const int64_t *offsets,
                                       int64_t sentences, bool *more) TARN_CHECKED;
// The part is translated. On rank 0 all translations [sentences of all] are filled, valid until the next round.
tarn_status tarn__translate_share_collect(tarn__translate_share *share, tarn__translation *translations,
                                          int64_t sentences) TARN_CHECKED;

#endif

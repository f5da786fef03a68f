// What tarn_continuations_score() does, also by several ranks.
#ifndef TARN_SCORE_CONTINUATIONS_H
#define TARN_SCORE_CONTINUATIONS_H

#include "base/buffer.h"
#include "base/memory.h"
#include "score/lm_text.h"
#include "tarn/choices.h"
#include "text/repair.h"

// Memory that is kept between calls. Zero-initialise.
typedef struct tarn__continuations {
  tarn__arena arena;
  tarn__scorer_sentence *sentences;
  size_t sentences_capacity;
  tarn_vocab_ids context, whole;
  tarn__buffer text;
  tarn__repaired repaired;
} tarn__continuations;
void tarn__continuations_close(tarn__continuations *work);

// A failure of a continuation sets *which to its index, else that is `count`.
tarn_status tarn__continuations_run(tarn__continuations *work, tarn_lm *lm, tarn_continuation_score *scores,
                                    const tarn_continuation *continuations, size_t count, bool bos,
                                    size_t *which) TARN_CHECKED;

#endif

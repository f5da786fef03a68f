// Inside of tarn_lm: scoring lines of text, alone or as pairs.
#ifndef TARN_DECODE_LM_TEXT_H
#define TARN_DECODE_LM_TEXT_H

#include "tarn/lm.h"

// As tarn_lm_score(). With `pairs` lines 2 i and 2 i + 1 belong together: the tokens at the beginning that they share
// are predicted once.
tarn_status tarn__lm_run(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                         size_t count, bool pairs) TARN_CHECKED;

#endif

// Inside of tarn_lm: scoring lines of text, alone or as pairs.
#ifndef TARN_SCORE_LM_TEXT_H
#define TARN_SCORE_LM_TEXT_H

#include "tarn/lm.h"

// As tarn_lm_score(). With `numbers` lines 2 i and 2 i + 1 are a good and a bad sentence that belong together: the
// tokens at the beginning that they share are predicted once, and messages say numbers[i]. NULL: lines are no pairs.
tarn_status tarn__lm_run(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                         size_t count, const int64_t *numbers) TARN_CHECKED;

// Whether it refuses invalid UTF-8.
bool tarn__lm_strict(const tarn_lm *lm);

#endif

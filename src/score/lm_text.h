// Inside of tarn_lm: scoring lines of text, alone or as pairs.
#ifndef TARN_SCORE_LM_TEXT_H
#define TARN_SCORE_LM_TEXT_H

#include "score/scorer.h"
#include "tarn/lm.h"
#include "tarn/vocab.h"

// As tarn_lm_score(). With `numbers` lines 2 i and 2 i + 1 are a good and a bad sentence that belong together: the
// tokens at the beginning that they share are predicted once, and messages say numbers[i]. NULL: lines are no pairs.
tarn_status tarn__lm_run(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                         size_t count, const int64_t *numbers) TARN_CHECKED;

// What it computes with, its vocabulary, and of its options: whether it refuses invalid UTF-8, and the tokens that are
// computed together.
tarn__scorer *tarn__lm_scorer(tarn_lm *lm);
const tarn_vocab *tarn__lm_vocab(const tarn_lm *lm);
bool tarn__lm_strict(const tarn_lm *lm);
int64_t tarn__lm_max_tokens(const tarn_lm *lm);
// Ranks that share its work, and whether this one is another than rank 0, which only helps with it
// (tarn__scorer_help()).
int tarn__lm_ranks(const tarn_lm *lm);
bool tarn__lm_helps(const tarn_lm *lm);
// Whether it is a masked language model, which sees a line as a whole.
bool tarn__lm_masked(const tarn_lm *lm);
// Most tokens that the model takes, and those that it was trained with at most (model.max_length).
int64_t tarn__lm_longest(const tarn_lm *lm);
int64_t tarn__lm_window(const tarn_lm *lm);

#endif

// Internals of tarn_lm: scoring lines of text, alone or in pairs.
#ifndef TARN_SCORE_LM_TEXT_H
#define TARN_SCORE_LM_TEXT_H

#include "score/scorer.h"
#include "tarn/lm.h"
#include "tarn/vocab.h"

// Like tarn_lm_score(). With `numbers` lines 2 i and 2 i + 1 are the good and the bad sentence of a pair: their common
// beginning is predicted once, and messages name numbers[i]. NULL: no pairs.
tarn_status tarn__lm_run(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                         size_t count, const int64_t *numbers) TARN_CHECKED;

// Its scorer, its vocabulary, and options: tokens per batch, and whether it refuses invalid UTF-8.
tarn__scorer *tarn__lm_scorer(tarn_lm *lm);
const tarn_vocab *tarn__lm_vocab(const tarn_lm *lm);
bool tarn__lm_strict(const tarn_lm *lm);
// Whether it truncates what is overlong; else it refuses that.
bool tarn__lm_truncates(const tarn_lm *lm);
int64_t tarn__lm_max_tokens(const tarn_lm *lm);
// Ranks that share its work, and whether this is not rank 0 but a helper (tarn__scorer_help()).
int tarn__lm_ranks(const tarn_lm *lm);
bool tarn__lm_helps(const tarn_lm *lm);
// Whether it is a masked language model, which sees a whole line.
bool tarn__lm_masked(const tarn_lm *lm);
// The model's limit of tokens, and the limit in training (model.max_length).
int64_t tarn__lm_longest(const tarn_lm *lm);
int64_t tarn__lm_window(const tarn_lm *lm);

#endif

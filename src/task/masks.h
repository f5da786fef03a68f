// Masks of masked language models (Devlin et al. 2019; Liu et al. 2019, section 2): the tokens of a sentence to
// predict, and the model's input in their place. Everything is drawn by Philox from (seed, epoch, number of the
// sentence), so a sentence has different masks in every epoch, and the same ones in any batch.
//
// Of n tokens that are not special, floor(share n + u) are masked, with u uniform in [0, 1), as in fairseq: the
// expected number equals the share, even in short sentences. Whole words are drawn one by one, and taken if they fit
// into that number, as in BERT, so the number may not be reached.
#ifndef TARN_TASK_MASKS_H
#define TARN_TASK_MASKS_H

#include "data/batch.h"
#include "description/description.h"
#include "tarn/vocab.h"

// The completion of a shard's batches. Special tokens are never masked and never drawn. Shard and vocabulary must
// outlive it. Fails with USAGE if the vocabulary, with file `name`, has no <mask>.
tarn_status tarn__masks_open(tarn__batch_finish *finish, const tarn_config_masking *masking, const tarn__shard *shard,
                             const tarn_vocab *vocab, const char *name) TARN_CHECKED;

// The same for conditional masked language models (Ghazvininejad et al. 2019): of the n tokens of a target, except its
// end of sentence, a number uniform in 1 .. n is masked, unknown words among them, and all masked tokens become <mask>.
tarn_status tarn__masks_open_any(tarn__batch_finish *finish, const tarn__shard *shard, const tarn_vocab *vocab,
                                 const char *name) TARN_CHECKED;

// Maximum number of masks for `rows` rows in `sentences` sentences.
int64_t tarn__masks_most(const tarn_config_masking *masking, int64_t rows, int64_t sentences);

#endif

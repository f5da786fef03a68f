// Masks of masked language models (Devlin et al. 2019; Liu et al. 2019, section 2): which tokens of a sentence are to
// be guessed, and what the model reads in their place. All is drawn by Philox from (seed, epoch, number of the
// sentence), so that a sentence has other masks in every epoch, and the same ones whatever batch it is in.
//
// Of n tokens that are not special, floor(share n + u) are masked, u uniform in [0, 1), as in fairseq: in the mean as
// many as the share says, in short sentences too. Whole words are drawn one after the other, and taken where they fit
// into that number, as BERT does it, so that it may not be reached.
#ifndef TARN_TASK_MASKS_H
#define TARN_TASK_MASKS_H

#include "data/batch.h"
#include "description/description.h"
#include "tarn/vocab.h"

// What finishes the batches of a shard. Special tokens are never masked and never drawn. Shard and vocabulary must
// outlive it. Fails with USAGE where the vocabulary has no <mask>, `name` being its file.
tarn_status tarn__masks_open(tarn__batch_finish *finish, const tarn_config_masking *masking, const tarn__shard *shard,
                             const tarn_vocab *vocab, const char *name) TARN_CHECKED;

// Most masks of so many rows in so many sentences.
int64_t tarn__masks_most(const tarn_config_masking *masking, int64_t rows, int64_t sentences);

#endif

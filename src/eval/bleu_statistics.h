// What corpus BLEU needs to know of a sentence. The score of any collection of sentences comes from the sums of their
// statistics, so a resampled test set is scored without reading a word again.
#ifndef TARN_EVAL_BLEU_STATISTICS_H
#define TARN_EVAL_BLEU_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tarn/score.h"

typedef struct tarn__bleu_statistics {
  int64_t counts[TARN_BLEU_ORDER];  // matched n-grams
  int64_t totals[TARN_BLEU_ORDER];  // n-grams of the hypothesis
  int64_t hypothesis_length, reference_length;
} tarn__bleu_statistics;

// Fills statistics[s] for every sentence; arguments and failures are those of tarn_bleu_corpus().
tarn_status tarn__bleu_sentences(tarn__bleu_statistics *statistics, const char *const *hypotheses,
                                 const char *const *const *references, size_t sentences, size_t streams,
                                 const tarn_bleu_options *options) TARN_CHECKED;

// The score of summed statistics, 0 .. 100, with the very arithmetic of tarn_bleu_corpus().
double tarn__bleu_score(const tarn__bleu_statistics *sums, const tarn_bleu_options *options);

#endif

// Sufficient statistics of each sentence for a score. The score of any collection of sentences follows from the sums of
// their statistics, so a resampled test set is scored without reading a word again.
#ifndef TARN_EVAL_STATISTICS_H
#define TARN_EVAL_STATISTICS_H

#include "base/status.h"
#include "tarn/score.h"

// The score of summed statistics.
typedef double (*tarn__statistics_score)(const double *sums, const void *options);

struct tarn_statistics {
  double *values;  // (sentences, width): whole numbers below 2^53, except mean lengths of references
  size_t sentences, width;
  tarn__statistics_score score;
  void *options;  // a copy, for `score`
};

// Allocates the statistics; `options` are `options_size` bytes. The caller fills `values`.
tarn_status tarn__statistics_open(tarn_statistics **statistics, size_t sentences, size_t width,
                                  tarn__statistics_score score, const void *options, size_t options_size) TARN_CHECKED;

// Statistics of BLEU without values, which the caller fills: of each sentence the matched n-grams of orders 1 to 4, its
// n-grams of these orders, its words and those of its reference.
enum { TARN__BLEU_WIDTH = 2 * TARN_BLEU_ORDER + 2 };
tarn_status tarn__bleu_statistics_blank(tarn_statistics **statistics, size_t sentences,
                                        const tarn_bleu_options *options) TARN_CHECKED;

// The score of the sentences, each counted `times` (sentences) times; NULL: once. `sums` has space for `width` numbers.
double tarn__statistics_score_of(const tarn_statistics *statistics, const uint32_t *times, double *sums);

#endif

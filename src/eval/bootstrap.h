// Paired bootstrap resampling (Koehn, EMNLP 2004) from the statistics of sentences.
#ifndef TARN_EVAL_BOOTSTRAP_H
#define TARN_EVAL_BOOTSTRAP_H

#include "eval/bleu_statistics.h"
#include "tarn/results.h"

enum { TARN__RESAMPLES_MOST = 1000000 };

typedef struct tarn__bootstrap_options {
  const tarn_bleu_options *bleu;
  int64_t resamples;  // 1 .. TARN__RESAMPLES_MOST
  uint64_t seed;
  // The sentences of each resample (resamples x sentences), for comparison with other programs; NULL: resample r draws
  // from stream r of the seed, so that it does not depend on the others.
  const uint32_t *indices;
} tarn__bootstrap_options;

// systems[i] and baselines[i] are the statistics (sentences) of pair i, of 1 .. `pairs`. A resample draws the same
// sentences for all pairs. `per_pair` (pairs) may be NULL; *pooled is that of the mean difference over the pairs.
// At most 2^31 sentences. Fails with USAGE or MEMORY.
tarn_status tarn__bootstrap(tarn_results_significance *pooled, tarn_results_significance *per_pair,
                            const tarn__bleu_statistics *const *systems, const tarn__bleu_statistics *const *baselines,
                            size_t pairs, size_t sentences, const tarn__bootstrap_options *options) TARN_CHECKED;

#endif

// Bootstrap resampling of the items of a test: sentences, or minimal pairs. A resample has as many items as the test,
// drawn with replacement, and all systems are scored on the same items, so common effects of the items cancel in
// differences (Koehn, "Statistical Significance Tests for Machine Translation Evaluation", EMNLP 2004).
#ifndef TARN_EVAL_BOOTSTRAP_H
#define TARN_EVAL_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TARN__RESAMPLES_MOST = 1000000 };

typedef struct tarn__bootstrap_options {
  int64_t resamples;  // 1 .. TARN__RESAMPLES_MOST
  uint64_t seed;
  // Numbers of items of consecutive strata; items are drawn within their stratum. NULL: all items are one stratum.
  const size_t *strata;
  size_t stratum_count;
  // The items of each resample (resamples x items), for comparison with other programs; NULL: resample r draws from
  // stream r of the seed, independently of the others.
  const uint32_t *indices;
} tarn__bootstrap_options;

// The score of a system on the items, each counted `times` (items) times; NULL: once.
typedef double (*tarn__bootstrap_score)(void *user, size_t system, const uint32_t *times);

// observed[i] is the score of system i of 1 .. `systems` on the original test, resampled[i * resamples + r] its score
// on resample r. 1 .. 2^31 - 1 items. Fails with USAGE or MEMORY.
tarn_status tarn__bootstrap(double *observed, double *resampled, size_t systems, size_t items,
                            tarn__bootstrap_score score, void *user,
                            const tarn__bootstrap_options *options) TARN_CHECKED;

#endif

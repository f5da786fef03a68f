// How sure a score is, and whether one system is better than another: bootstrap intervals, paired bootstrap resampling
// (Koehn, EMNLP 2004) and paired approximate randomization (Noreen 1989; Riezler and Maxwell, 2005), as sacreBLEU 2 has
// them. Random numbers are not NumPy's, so results equal sacreBLEU's within sampling error only.
//
// All of it is about the sentences of a test set. It does not say what another seed of the training would have given
// (tarn/lab/results.h does).
//
// A score's statistics (tarn/score.h) are counted once for each system; then any number of resamples is scored from
// their sums.
#ifndef TARN_LAB_SIGNIFICANCE_H
#define TARN_LAB_SIGNIFICANCE_H

#include "tarn/export.h"
#include "tarn/score.h"

#ifdef __cplusplus
extern "C" {
#endif

// With fewer resamples 2.5 % of them, which are cut off at each end of an interval, would be less than one.
enum { TARN_SIGNIFICANCE_LEAST = 40, TARN_SIGNIFICANCE_MOST = 1000000 };

typedef struct tarn_significance_options {
  // Test sets drawn from the sentences with replacement; TARN_SIGNIFICANCE_LEAST .. MOST, or 0 for no intervals
  // (default 0).
  int64_t resamples;
  bool paired_bootstrap;  // test each system against the first one in these resamples (default false)
  // Trials of the other test, in which the outputs of system and baseline change places for about half of the
  // sentences; LEAST .. MOST, or 0 for none (default 0). One of the two tests at most.
  int64_t trials;
  // Resample r, or trial r, draws from stream r of the seed: the same sentences for all systems (default 12345).
  uint64_t seed;
} tarn_significance_options;

typedef struct tarn_significance {
  double score;
  // Of the resamples' scores, and NAN without them: their mean, the interval that holds 95 % of them, and half of its
  // width. sacreBLEU prints mean and half width.
  double mean, low, high, half_width;
  // From the score of the first system; NAN for that system, and without a test.
  double difference;
  // sacreBLEU's p, (count + 1) / (n + 1), so never 0; NAN as above. Trials are counted in which the scores differ more
  // than they do on the test set, in either direction. Resamples are counted whose difference, less the mean of all, is
  // larger than that of the test set (differences without their signs); this is a test in one direction, whose p is
  // half of the other's, or less. An exception: where only k sentences differ, p is at least 2^(1 - k). sacreBLEU gives
  // its smallest p to equal systems, and to systems that differ in one sentence.
  double p;
} tarn_significance;

TARN_API void tarn_significance_default(tarn_significance_options *options);

// Fills out[i] for each of `count` systems, the first of which is the baseline. All statistics are of one kind, counted
// with the same options, references and number of sentences, below 2^31. Options NULL: defaults. Fails with USAGE where
// they are not, on bad options, and on a test without a second system; and with MEMORY.
TARN_API tarn_status tarn_significance_compute(tarn_significance *out, const tarn_statistics *const *systems,
                                               size_t count, const tarn_significance_options *options) TARN_CHECKED;

// The signature of a score with what was resampled, as sacreBLEU writes it:
// "nrefs:1|bs:1000|seed:12345|case:mixed|...". `signature` is that of the score, and is written unchanged where nothing
// was resampled.
TARN_API void tarn_significance_signature(char text[TARN_SIGNATURE_TEXT], const char *signature,
                                          const tarn_significance_options *options);

#ifdef __cplusplus
}
#endif
#endif

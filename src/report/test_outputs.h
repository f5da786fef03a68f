// The outputs of runs on the test set, scored on resamples of its items.
#ifndef TARN_REPORT_TEST_OUTPUTS_H
#define TARN_REPORT_TEST_OUTPUTS_H

#include "eval/bootstrap.h"
#include "report/table_build.h"

// Zero-initialise.
typedef struct tarn__test_outputs {
  const double **resampled;  // (runs) lists of (resamples); NULL: the run is not included
  double *scores;            // (included runs, resamples)
  size_t items;              // sentences or pairs; 0: no run is included
} tarn__test_outputs;
void tarn__test_outputs_close(tarn__test_outputs *outputs);

// Loads the finished runs with the score. A note of the table gives the number of runs not included because their
// outputs or references no longer exist. Fails with DATA if outputs do not match the scores in test.json, USAGE, IO or
// MEMORY.
tarn_status tarn__test_outputs_bleu(tarn__test_outputs *outputs, struct tarn__results_table_memory *table) TARN_CHECKED;
tarn_status tarn__test_outputs_chrf(tarn__test_outputs *outputs, struct tarn__results_table_memory *table) TARN_CHECKED;
tarn_status tarn__test_outputs_blimp(tarn__test_outputs *outputs,
                                     struct tarn__results_table_memory *table) TARN_CHECKED;

// The options of a run's test BLEU, by its signature. Fails with DATA if it is of other options than tarn has.
tarn_status tarn__test_outputs_bleu_options(tarn_bleu_options *options, const tarn_results_run *run) TARN_CHECKED;

// Fills `outputs` with the scores of `systems` systems on resamples; system i has the outputs of run runs[i].
tarn_status tarn__test_outputs_resample(tarn__test_outputs *outputs, const struct tarn__results_table_memory *table,
                                        const size_t *runs, size_t systems, size_t items, tarn__bootstrap_score score,
                                        void *user, const size_t *strata, size_t stratum_count) TARN_CHECKED;

#endif

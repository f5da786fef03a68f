// What models do as dynamical systems (tarn/lab/dynamics.h), summed over sentences, and as a page with tables and
// figures.
//
//   tarn_dynamics_model models[] = {{"trained", tarn_dynamics_describe(a), result_a}, ...};
//   tarn_dynamics_report_options options;
//   tarn_dynamics_report_default(&options);
//   options.output = "report", options.models = models, options.model_count = 2;
//   status = tarn_dynamics_report_write(&options);
//
// Files of the folder:
//   dynamics.html     the page; needs no other file, no network and no script; light, dark, and for print
//   dynamics.md       tables and figures
//   sentences.csv     one line a model and sentence, with its exponents
//   iterations.csv    one line a model, sentence and iteration: exponents and all measures
//   training.csv      the curve over a training, if there is one
//   radii.csv         exponents and memory over spectral radius and leak rate, if they were computed
//   figures/NAME.svg  each figure
#ifndef TARN_LAB_DYNAMICS_REPORT_H
#define TARN_LAB_DYNAMICS_REPORT_H

#include "tarn/export.h"
#include "tarn/lab/dynamics.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Over the sentences of a result. Spreads leave out what a sentence does not have (NAN), and exponents of -INFINITY,
// which `vanished` counts.
typedef struct tarn_dynamics_summary {
  int64_t sentences;
  int64_t vanished;                   // sentences whose first exponent is -INFINITY: perturbations vanish
  tarn_dynamics_spread exponent;      // the first one
  tarn_dynamics_spread kaplan_yorke;  // dimension
  int64_t kaplan_yorke_least;         // sentences of which it is a lower bound
  tarn_dynamics_spread growth;
  tarn_dynamics_spread expansion_end;
  int64_t verdicts[TARN_DYNAMICS_VERDICT_COUNT];
  int64_t settlings[TARN_DYNAMICS_SETTLING_COUNT];
  tarn_dynamics_spread settled;  // the iteration, of those that settled
  // Of two starts, and of the tokens of a sentence: how many sentences have them, in how many they became one, when (of
  // these), and how far apart they stayed (of the others).
  int64_t starts, starts_synchronised, tokens, tokens_synchronised;
  tarn_dynamics_spread starts_iteration, starts_offset, tokens_iteration, tokens_offset;
  // At the last iteration of a sentence, and at the start.
  tarn_dynamics_spread participation, participation_start, rank_collapse, rank_collapse_start, token_distance,
      token_distance_start, token_cosine;
} tarn_dynamics_summary;
// Fails with MEMORY.
TARN_API tarn_status tarn_dynamics_summarise(tarn_dynamics_summary *summary,
                                             const tarn_dynamics_result *result) TARN_CHECKED;

// One of the models of a report.
typedef struct tarn_dynamics_model {
  const char *name;  // unique
  const tarn_dynamics_info *info;
  const tarn_dynamics_result *result;
} tarn_dynamics_model;

// A checkpoint of a training.
typedef struct tarn_dynamics_moment {
  int64_t update;
  tarn_dynamics_summary summary;
} tarn_dynamics_moment;

typedef struct tarn_dynamics_report_options {
  const char *output;                 // folder; made with those above it where it does not exist
  const char *title;                  // NULL: says what it is (default)
  const char *input;                  // name of the text, for the line under each figure; NULL: none was read
  const tarn_dynamics_model *models;  // [model_count], at least 1
  size_t model_count;
  const tarn_dynamics_moment *moments;  // [moment_count], by rising update, of the first model's run; NULL: none
  size_t moment_count;
  const tarn_dynamics_scan *scan;  // of the first model; NULL: none
} tarn_dynamics_report_options;
TARN_API void tarn_dynamics_report_default(tarn_dynamics_report_options *options);

// Writes all files, each atomically; dynamics.html comes last. Files of an earlier report with the same names are
// replaced, others in the folder stay. Fails with USAGE (no output, no model), IO or MEMORY.
TARN_API tarn_status tarn_dynamics_report_write(const tarn_dynamics_report_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

// Scaling laws: the loss of trainings as a power of their size, with intervals, predictions and a figure.
//
//   L(x) = a x^-b + c                        one axis (Hestness et al. 2017; Kaplan et al. 2020 with c = 0)
//   L(x, y) = a x^-b + a' y^-b' + c          two axes, such as parameters and tokens (Hoffmann et al. 2022, "approach
//   3")
//
// c is the loss that no size removes, b the exponent. A law is fitted to the runs of a family of configurations by the
// Huber loss of the differences of logarithms, from many first values, as by Hoffmann et al.
//
// Intervals come from a bootstrap of residuals: the logarithmic differences between runs and law, scaled by
// sqrt(n / (n - unknowns)), are drawn with replacement and added to the law, which is then fitted anew. So they cover
// the spread of seeds and what the law does not describe alike, if both are the same at every size; they do not cover
// that another law may hold beyond the sizes measured. The check by the largest size, left out and predicted from the
// others, shows how far that can be trusted.
//
//   const tarn_fit_family families[] = {{"regular", "regular-*"}, {"reservoir", "reservoir-*"}};
//   tarn_fit_default(&options);
//   options.families = families, options.family_count = 2;
//   status = tarn_fit_make(&fit, results, &options);
//   ... fit->laws[0].b[0].value, fit->pairs[0].exponent[0].low ...
//   tarn_fit_close(&fit);
#ifndef TARN_LAB_FIT_H
#define TARN_LAB_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/lab/results.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the size of a run is.
typedef enum tarn_fit_axis {
  TARN_FIT_PARAMETERS,  // all, embeddings included, each once
  TARN_FIT_TRAINED,     // trained parameters
  TARN_FIT_TOKENS,      // source and target tokens trained on, every pass counted
  TARN_FIT_TEXT,        // the same, every token of the training data once
  TARN_FIT_OPERATIONS,  // of the training (tarn_cost.operations)
  TARN_FIT_AXES
} tarn_fit_axis;
// "parameters", "trained", "tokens", "text", "operations"; "?" for another value.
TARN_API const char *tarn_fit_axis_name(tarn_fit_axis axis);
// The axis of a name. Fails with USAGE, naming the nearest one.
TARN_API tarn_status tarn_fit_axis_parse(tarn_fit_axis *axis, const char *name) TARN_CHECKED;

enum { TARN_FIT_MOST_AXES = 2 };

// The configurations of one law.
typedef struct tarn_fit_family {
  const char *name;
  const char *pattern;  // which groups of the results, by their names: a shell pattern, as of fnmatch()
} tarn_fit_family;

typedef struct tarn_fit_options {
  tarn_fit_axis axes[TARN_FIT_MOST_AXES];  // (default: parameters)
  size_t axis_count;                       // 1 (default) or 2, different
  const char *metric;  // a score of which less is better and all values are positive; the best of each run counts. NULL
                       // (default): valid/nll if all finished runs have it, else valid/loss
  const tarn_fit_family *families;  // NULL (default): all configurations are one family, "all"
  size_t family_count;
  const double *predict;  // sizes whose loss is predicted, (predict_count, axis_count), > 0; NULL (default): 2, 4 and
                          // 10 times the largest size of all families
  size_t predict_count;
  double huber;  // where the Huber loss of a difference of logarithms turns from squares to lines; > 0 (default 1e-3)
  int64_t
      resamples;  // of the bootstrap: TARN_SIGNIFICANCE_LEAST .. TARN_SIGNIFICANCE_MOST; 0: no intervals (default 1000)
  uint64_t seed;  // of the bootstrap (default 12345)
} tarn_fit_options;
TARN_API void tarn_fit_default(tarn_fit_options *options);

// A number with its 95 % interval; NAN: unknown, or without resamples.
typedef struct tarn_fit_value {
  double value, low, high;
} tarn_fit_value;

// A finished run of a family.
typedef struct tarn_fit_point {
  size_t run, group;  // indices into tarn_results.runs and .groups
  double x[TARN_FIT_MOST_AXES];
  double loss;
} tarn_fit_point;

typedef struct tarn_fit_prediction {
  double x[TARN_FIT_MOST_AXES];
  tarn_fit_value loss;
} tarn_fit_prediction;

typedef struct tarn_fit_law {
  const char *family;
  const tarn_fit_point *points;
  size_t point_count, size_count;  // runs, and different sizes; those within 2 % and of one configuration are one
  tarn_fit_value a[TARN_FIT_MOST_AXES], b[TARN_FIT_MOST_AXES], c;
  double residual;  // root of the mean squared difference of logarithms: 0.01 is about 1 % of the loss
  bool at_bound;    // an exponent is at the end of its range, 0.001 .. 4: these sizes do not determine the law
  const tarn_fit_prediction *predictions;  // as many for each law, of the same sizes
  // The check: the runs of the largest size (of the first axis), and what the law of the others predicts for their
  // mean. NAN where the others have too few sizes for a law.
  double checked_x, checked_loss;
  tarn_fit_value checked;
} tarn_fit_law;

// Two families: what differs.
typedef struct tarn_fit_pair {
  size_t first, second;                         // indices into the laws
  tarn_fit_value exponent[TARN_FIT_MOST_AXES];  // b of the second less b of the first
  tarn_fit_value offset;                        // c of the second less c of the first
  // With one axis: how many times the first family's size the second one needs for the loss that the first has at the
  // largest size that both were measured at least up to. NAN: it never has that loss, by its law; `high` INFINITY: nor
  // has it in some of the resamples.
  double at;
  tarn_fit_value size;
} tarn_fit_pair;

typedef struct tarn_fit {
  tarn_fit_axis axes[TARN_FIT_MOST_AXES];
  size_t axis_count;
  const char *metric;  // full name
  int64_t resamples;
  const tarn_fit_law *laws;  // in the order of the families
  size_t law_count;
  const tarn_fit_pair *pairs;  // every later law with the first one
  size_t pair_count;
  size_t prediction_count;   // of each law
  const char *const *notes;  // what was left out, a line each
  size_t note_count;
  struct tarn__fit_memory *memory;
} tarn_fit;

// Fits a law for each family to its finished runs. `results` must stay open until the fit is closed; options NULL:
// defaults. Fails with
// - USAGE: options out of range, a metric of which more is better or that no run has (the nearest is named), a family
//   without configurations, a configuration in two families;
// - DATA: a run lacks the metric or the size, or a value is not positive (the run is named); a family has too few
//   different sizes: one axis needs 4, two need 6, with 3 on each;
// - MEMORY.
TARN_API tarn_status tarn_fit_make(tarn_fit **fit, const tarn_results *results,
                                   const tarn_fit_options *options) TARN_CHECKED;
TARN_API void tarn_fit_close(tarn_fit **fit);

// Writes the figure as SVG, atomically: runs as points, laws as lines with their intervals, up to the largest predicted
// size, over the first axis; with a second axis a line for each of its sizes. Both scales are logarithmic. Fails with
// IO or MEMORY.
TARN_API tarn_status tarn_fit_write_svg(const tarn_fit *fit, const char *path) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

// Models as dynamical systems, and a report about them.
#ifndef TARN_LAB_DYNAMICS_H
#define TARN_LAB_DYNAMICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/lab/series.h"
#include "tarn/status.h"
#include "tarn/train.h"

#ifdef __cplusplus
extern "C" {
#endif

// A model as a dynamical system: its layers are time, and the representations of a sentence's tokens are the state.
// Computes Lyapunov exponents, transients and attractors, separation and synchronisation, and effective dimension.
//
//   tarn_dynamics_options options;
//   tarn_dynamics_default(&options);
//   tarn_dynamics *dynamics;
//   status = tarn_dynamics_open(&dynamics, "runs/model4", &options);
//   status = tarn_dynamics_encode_file(dynamics, "test.de");
//   tarn_dynamics_result *result;
//   status = tarn_dynamics_run(dynamics, &result);
//   ... result->sentences[i].spectrum[0] ...
//   tarn_dynamics_result_close(&result);
//   tarn_dynamics_close(&dynamics);
//
// The map g from the state x_t to x_{t+1}:
//   period      a stack with shared weights repeats a sequence of layers: "(R1 L1)*4" has g = f_L1 after f_R1, and
//               "L1*8" has g = f_L1. It is iterated any number of times, far beyond the trained depth. The state is the
//               residual stream, with all branches added; the embeddings and the final norm are not part of the map.
//   layers      a stack without such a period is a map that changes at every step; it has as many iterations as layers.
//   recurrence  a layer that reads its text token by token (esn, gru, lstm): an iteration is a token, and the state is
//               the hidden state, followed by the cell state in an LSTM. It is driven by the text, or runs free.
// In a translation model the stack is the encoder, which reads the source; other models have only one stack.
//
// Definitions; x is a state, N the number of iterations, |.| the Euclidean norm:
//   local exponents    Benettin et al. 1980: k perturbations are propagated by exact Jacobian-vector products and
//                      orthonormalised after every `every` iterations by a QR factorisation (Gram-Schmidt, each
//                      projection done twice, in double). A local exponent is the logarithm of an entry of R's
//                      diagonal, per iteration; -INFINITY if a perturbation vanishes, which is then replaced by a
//                      random one.
//   finite-time        exponents: the mean of the local ones of iterations 1 .. t
//   exponents          the mean of the local ones after the first `discard` iterations: natural logarithms, per
//                      iteration, largest first
//   Kaplan-Yorke       j + (l_1 + ... + l_j) / |l_{j+1}|, with the largest j for which l_1 + ... + l_j is at least 0
//                      (Kaplan and Yorke 1979)
//   growth             the sum over iterations 1 .. t of the first local exponent: the logarithm of the growth of an
//                      infinitesimal perturbation. Expansion ends at the iteration where it is largest.
//   distances          relative: |a - b| divided by the largest norm of the state so far
//   participation      (sum of eigenvalues)^2 / sum of squared eigenvalues of the covariance of a sentence's tokens:
//                      1 .. tokens - 1 directions
//   rank collapse      |X - mean row| / |X| in the Frobenius norm, the share of the tokens' representations X that they
//                      do not have in common (Dong, Cordonnier and Loukas 2021): 0 if all tokens are equal
// Results are bit-identical for equal inputs, options and threads.

typedef enum tarn_dynamics_precision {
  TARN_DYNAMICS_PRECISION_DOUBLE,  // states and perturbations in double, by the reference kernels
  TARN_DYNAMICS_PRECISION_FP32,    // in fp32, by the fast kernels; QR, logarithms and measures still in double
  TARN_DYNAMICS_PRECISION_COUNT
} tarn_dynamics_precision;

typedef enum tarn_dynamics_map {
  TARN_DYNAMICS_MAP_AUTO,  // a period if there is one, else the recurrence of the first recurrent layer, else layers
  TARN_DYNAMICS_MAP_PERIOD,
  TARN_DYNAMICS_MAP_LAYERS,
  TARN_DYNAMICS_MAP_RECURRENCE,
  TARN_DYNAMICS_MAP_COUNT
} tarn_dynamics_map;

// The input of a recurrence.
typedef enum tarn_dynamics_drive {
  TARN_DYNAMICS_DRIVE_TEXT,   // the text: the layer's input in the model, at each token
  TARN_DYNAMICS_DRIVE_FREE,   // none: zero input at each iteration
  TARN_DYNAMICS_DRIVE_NOISE,  // a reservoir of tarn_dynamics_open_reservoir(): uniform noise in -1 .. 1
  TARN_DYNAMICS_DRIVE_COUNT
} tarn_dynamics_drive;

// "double", "fp32"; "auto", "period", "layers", "recurrence"; "text", "free", "noise". NULL for other values.
TARN_API const char *tarn_dynamics_precision_name(tarn_dynamics_precision precision);
TARN_API const char *tarn_dynamics_map_name(tarn_dynamics_map map);
TARN_API const char *tarn_dynamics_drive_name(tarn_dynamics_drive drive);

// Called after every iteration with the iterations done and their total; any status but TARN_STATUS_OK stops the work
// and is returned. Meant for stopping; tarn/process.h reports progress for display.
typedef tarn_status (*tarn_dynamics_progress)(void *user, int64_t done, int64_t total);

typedef struct tarn_dynamics_options {
  tarn_dynamics_precision precision;  // default double, about fifty times slower than fp32. A recurrence is always
                                      // computed in double
  tarn_fp32 products;                 // of fp32: how they are computed, as train.fp32; exact in double. Default exact
  tarn_dynamics_map map;              // default auto
  int first_layer, last_layer;        // period: the iterated layers, from 1, whether they share weights or not;
                                      // recurrence: first_layer is the recurrent one. 0: detected; default 0
  tarn_dynamics_drive drive;          // default text
  int64_t starts;                     // recurrence without text: number of systems with different initial states, 1 ..
                                      // 4096; default 8
  int64_t iterations;                 // 1 .. 10^7; for layers at most their number; a driven recurrence ends with its
                                      // line. 0: the number of layers for layers, else 1000. Default 0
  int64_t exponents;                  // of each sentence, 0 .. 4096 and at most its dimensions; default 8
  int64_t every;     // iterations between two QR factorisations, 1 .. 1000; default 1. Larger values are faster, but
                     // perturbations must not overflow or become parallel in between
  int64_t discard;   // iterations excluded from the exponents, below `iterations`; -1: half of them, or none for layers
                     // and driven recurrences. Default -1
  double tolerance;  // relative distance below which two states count as equal; 0: 1e-9 in double, 1e-5 in fp32.
                     // Default 0
  int64_t longest_period;  // longest cycle detected, 1 .. 1024; default 32. This number of states is kept
  double apart;       // relative distance of the second initial state from the first, in a random direction, above 0;
                      // 0: no second start. Default 0.1
  int64_t kept;       // iterations, from the start, with states kept for the plane of principal components, 0 .. 10^5;
                      // default 64
  uint64_t seed;      // of perturbations, second starts and noise; for an untrained description also of its weights.
                      // Default 1
  const char *vocab;  // vocabulary file for a description without data.vocab; NULL: that of the description
  size_t max_memory;  // bytes in addition to the model; a larger need is refused with MEMORY before any computation; 0:
                      // no limit. Default 1e9
  bool strict;        // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;        // 0: all available to the process; default 0
  tarn_dynamics_progress progress;  // default NULL: none
  void *user;                       // of `progress`
} tarn_dynamics_options;

TARN_API void tarn_dynamics_default(tarn_dynamics_options *options);

typedef struct tarn_dynamics tarn_dynamics;

// Opens a checkpoint, the one chosen by tarn_checkpoint_find() in a run directory, or a description (a file name ending
// in .yaml or .yml). The weights of a description are random, those at the start of a training with this seed. Fails
// with USAGE (options; a map that the model does not have: the message lists the possible ones), IO, DATA or MEMORY.
TARN_API tarn_status tarn_dynamics_open(tarn_dynamics **dynamics, const char *path,
                                        const tarn_dynamics_options *options) TARN_CHECKED;
// An echo state network without a model: the reservoir of tarn_reservoir_open() for inputs of one column, free or
// driven by noise. options->precision has no effect. Fails with USAGE (also: drive text), DATA, NUMERIC or MEMORY.
TARN_API tarn_status tarn_dynamics_open_reservoir(tarn_dynamics **dynamics, const tarn_esn_options *reservoir,
                                                  const tarn_dynamics_options *options) TARN_CHECKED;
TARN_API void tarn_dynamics_close(tarn_dynamics **dynamics);

// A description of the map. Texts are valid until close.
typedef struct tarn_dynamics_info {
  const char *path;           // the file that was opened; "" for a reservoir without a model
  const char *text;           // the map in one line: encoder "(R1 L1)*4": an iteration is layers 1 to 2, "R1 L1"
  const char *pattern;        // of the stack: "(R1 L1)*4"; "" without a model
  tarn_dynamics_map map;      // never auto
  tarn_dynamics_drive drive;  // of a recurrence
  tarn_dynamics_precision precision;
  tarn_fp32 products;
  const char *device;           // the device in use: "reference", "cpu"
  bool trained;                 // false: weights are random
  int64_t update;               // optimiser steps done; 0 for an untrained description
  int first_layer, last_layer;  // of an iteration, from 1; for layers all of them; 0 without a model
  int layers;                   // in the stack
  int64_t depth;                // iterations of the trained model; an incomplete last period counts; 0 for recurrences
  int64_t width;                // size of a token's state; of a recurrence its whole state
  double spectral_radius, leak_rate;  // of an echo state network; NAN otherwise
} tarn_dynamics_info;
TARN_API const tarn_dynamics_info *tarn_dynamics_describe(const tarn_dynamics *dynamics);

// Replaces the sentences: `count` lines of lengths[i] bytes, or those of a text file ("-": standard input). For a
// translation model they are sources. A recurrence not driven by text needs none. Fails with DATA (a line without
// tokens or too long for the model, invalid UTF-8 with `strict`), USAGE (there is no model), IO or MEMORY.
TARN_API tarn_status tarn_dynamics_encode(tarn_dynamics *dynamics, const char *const *lines, const size_t *lengths,
                                          size_t count) TARN_CHECKED;
TARN_API tarn_status tarn_dynamics_encode_file(tarn_dynamics *dynamics, const char *path) TARN_CHECKED;

// The asymptotic behaviour of a trajectory, judged by the last longest_period states.
typedef enum tarn_dynamics_settling {
  TARN_DYNAMICS_SETTLING_FIXED_POINT,  // it is constant
  TARN_DYNAMICS_SETTLING_CYCLE,        // it repeats after `period` iterations, at most longest_period
  TARN_DYNAMICS_SETTLING_NONE,         // neither within the iterations
  TARN_DYNAMICS_SETTLING_DIVERGED,     // a state was not finite
  TARN_DYNAMICS_SETTLING_UNKNOWN,      // not judged: the map changes at every step (layers, driven recurrences)
  TARN_DYNAMICS_SETTLING_COUNT
} tarn_dynamics_settling;

// The behaviour of perturbations.
typedef enum tarn_dynamics_verdict {
  TARN_DYNAMICS_VERDICT_CONTRACTING,  // the first exponent is at most 0, and perturbations never grew e-fold
  TARN_DYNAMICS_VERDICT_TRANSIENT,    // it is at most 0, but they grew e-fold or more before: transient chaos, if the
                                      // growth is exponential
  TARN_DYNAMICS_VERDICT_EXPANDING,    // the first exponent is above 0: chaos, if the states stay bounded
  TARN_DYNAMICS_VERDICT_DRIFTING,  // it is above 0, but the state itself has grown by half or more, and perturbations
                                   // less than e-fold relative to it, as in a residual stream that layers only add to
  TARN_DYNAMICS_VERDICT_DIVERGED,  // a state was not finite
  TARN_DYNAMICS_VERDICT_UNKNOWN,   // no exponents were requested
  TARN_DYNAMICS_VERDICT_COUNT
} tarn_dynamics_verdict;

// "fixed point", "cycle", "none", "diverged", "unknown"; "contracting", "transient", "expanding", "drifting",
// "diverged", "unknown".
TARN_API const char *tarn_dynamics_settling_name(tarn_dynamics_settling settling);
TARN_API const char *tarn_dynamics_verdict_name(tarn_dynamics_verdict verdict);

// Whether two trajectories merge.
typedef struct tarn_dynamics_synchrony {
  bool there;         // false: there is no pair (no second start; sentences of one token; a recurrence's tokens)
  bool synchronised;  // their distance is below the tolerance from `iteration` to the end
  int64_t iteration;  // -1: not synchronised
  double offset;      // their relative distance at the end; for tokens, the mean over pairs
  double wander;      // range of that distance in the last longest_period iterations (largest - smallest): if an offset
                      // does not wander, they have settled apart
  int64_t lag;        // for two settled starts: iterations by which the second lags the first (same cycle, different
                      // phase), 0 .. longest_period - 1; -1: no lag brings them below the tolerance
} tarn_dynamics_synchrony;

// A sentence, or a system of a recurrence. Arrays over iterations have `iterations` + 1 numbers, for the start and
// after each iteration, or, if noted, `iterations` rows, one for each. They are NAN after a divergence, and if a
// measure does not exist: those of pairs for a single token and for recurrences.
typedef struct tarn_dynamics_sentence {
  int64_t line;             // of the text, from 1; without a text the number of the system
  int64_t tokens;           // of the sentence; 1 for a recurrence
  int64_t dimensions;       // of the state
  int64_t iterations;       // rows of the arrays
  int64_t diverged;         // first iteration with a state that is not finite; -1: none
  int64_t counted;          // iterations averaged in the exponents; 0: there are no exponents (NAN)
  double *exponents;        // [exponents]
  double *local;            // [iterations, exponents]; with `every` above 1 equal for all iterations between two QRs
  double *finite_time;      // [iterations, exponents]
  double kaplan_yorke;      // dimension; 0 if the first exponent is negative; NAN without exponents
  bool kaplan_yorke_least;  // too few exponents: their number is a lower bound of the dimension
  double state_growth;      // of the state's norm over the iterations counted: natural logarithm, per iteration; NAN
                            // without exponents, and if the first of them starts with zeros
  double growth;            // maximum, natural logarithm, at least 0
  int64_t expansion_end;    // the iteration of the maximum; 0: perturbations never grew
  tarn_dynamics_verdict verdict;
  tarn_dynamics_settling settling;
  int64_t period;   // 1 for a fixed point; 0: not settled
  int64_t settled;  // the iteration from which it holds until the end; -1: not settled. Cycles are judged by 16 random
                    // projections of the states
  double residual;  // smallest relative distance of the last state from the longest_period states before it; NAN: not
                    // judged
  tarn_dynamics_synchrony starts, between_tokens;
  double *norm;            // root mean square of the state's entries
  double *step;            // relative distance from the previous state; NAN at the start
  double *start_distance;  // relative distance of the two starts
  double *token_distance;  // mean Euclidean distance between tokens, over pairs
  double *token_cosine;    // mean cosine similarity of tokens, over pairs
  double *participation;
  double *rank_collapse;
  double *plane;  // [kept + 1, tokens, 2], `kept` of the result: the tokens in the plane of the first two principal
                  // components of all kept states; NULL: none kept
} tarn_dynamics_sentence;

// All pointers are owned by the result until close.
typedef struct tarn_dynamics_result {
  int64_t count;                           // sentences
  tarn_dynamics_sentence *sentences;       // [count]
  int64_t iterations;                      // maximum over sentences
  int64_t exponents;                       // computed for each
  int64_t every, discard, longest_period;  // as used
  double tolerance, apart;                 // as used
  int64_t kept;                            // iterations in `plane`, at most as requested
  double plane_share[2];                   // of the variance of the kept states, along each principal component
  int64_t diverged;                        // sentences that diverged
  int threads;
  double seconds;       // computing time
  size_t memory_bytes;  // in addition to the model
  struct tarn__dynamics_memory *memory;
} tarn_dynamics_result;

// Runs the whole computation. Fails with USAGE (no sentences; more exponents than a sentence has dimensions; iterations
// beyond the number of layers: the message says what is possible), UNSUPPORTED (a part has no rule for perturbations,
// or only in double: the message names it), MEMORY, or the status of `progress`. An overflowing state is not a failure:
// see `diverged`.
TARN_API tarn_status tarn_dynamics_run(tarn_dynamics *dynamics, tarn_dynamics_result **result) TARN_CHECKED;
TARN_API void tarn_dynamics_result_close(tarn_dynamics_result **result);

// The distribution of a number over sentences.
typedef struct tarn_dynamics_spread {
  int64_t count;                             // numbers, without NAN; 0: the other fields are NAN
  double mean, deviation;                    // deviation: sample standard deviation, 0 for one number
  double least, lower, median, upper, most;  // quartiles are interpolated linearly (type 7 of Hyndman and Fan 1996)
} tarn_dynamics_spread;

// The numbered checkpoints of a run directory by increasing update, for a curve over a training.
typedef struct tarn_dynamics_checkpoints {
  int64_t count;
  char **paths;      // [count]
  int64_t *updates;  // [count]
} tarn_dynamics_checkpoints;
// Fails with USAGE (not a directory), DATA (no checkpoints), IO or MEMORY; *checkpoints is then empty.
TARN_API tarn_status tarn_dynamics_checkpoints_find(tarn_dynamics_checkpoints *checkpoints,
                                                    const char *run) TARN_CHECKED;
TARN_API void tarn_dynamics_checkpoints_close(tarn_dynamics_checkpoints *checkpoints);

// Exponents over a training whose description has dynamics.input: the options get the functions that compute them
// (tarn_train_options.dynamics). At each of these updates the model in memory is iterated as tarn_dynamics_run() would
// iterate its checkpoint, with the options of the description, `apart` and `kept` 0, and the threads of the training.
// Of the summary over sentences, the log gets
//   exponent, exponent_lower, exponent_upper   median and quartiles of the first exponent
//   exponent_2 ...                             medians of the others
//   kaplan_yorke, growth, expansion_end, participation, rank_collapse, token_distance, token_cosine   medians
//   contracting, transient, expanding, drifting, diverged   shares of the sentences with these verdicts
//   vanished                                   the share whose first exponent is -INFINITY
// A median that no sentence has is left out. Of other descriptions nothing is computed.
TARN_API void tarn_dynamics_follow(tarn_train_options *options);
// Fails as tarn_train_open() with these functions would, for a plan: with USAGE, DATA, UNSUPPORTED or MEMORY. What
// cannot be read, the vocabulary or the sentences, is not checked.
TARN_API tarn_status tarn_dynamics_check(const tarn_config *config) TARN_CHECKED;

// The echo state property: exponents and memory of an echo state network over spectral radius and leak rate.
typedef struct tarn_dynamics_scan_options {
  const double *spectral_radii,
      *leak_rates;                  // values to try: radii 0 .. 1000, leak rates above 0, at most 1; NULL: the
                                    // network's own. Default NULL
  size_t radius_count, leak_count;  // number of each, at least 1 if given; default 0
  int64_t delays;        // memory capacity: the largest delay, 1 .. 10^4; 0: twice the units, at most 1000; -1: not
                         // computed. Default 0
  int64_t samples;       // memory capacity: training inputs of the readouts, and the same number of test inputs, 100 ..
                         // 10^6, after a washout of as many inputs as delays, at least 500. Default 2000
  double ridge;          // of these readouts, at least 0; default 1e-8
  double input_scaling;  // the single noise input has weights uniform in +-input_scaling; above 0; default 0.1
} tarn_dynamics_scan_options;
TARN_API void tarn_dynamics_scan_default(tarn_dynamics_scan_options *options);

typedef struct tarn_dynamics_point {
  double spectral_radius, leak_rate;
  double free;    // largest exponent with zero input: median over systems; -INFINITY if perturbations vanish; NAN: no
                  // system had one
  double driven;  // the same, driven by the given text, or by noise without one
  double share_synchronised;  // of the driven systems, the share whose two starts merged: 1 if the echo state property
                              // holds
  int64_t diverged;           // driven systems with states that are not finite
  double memory_capacity;     // sum over delays k of the squared correlation, on test inputs, of u(t - k) and its best
                              // linear readout of the state at t; u uniform in -1 .. 1 (Jaeger 2002). At most the
                              // number of units; each forgotten delay contributes about 1 / samples. NAN: not computed,
                              // or states that are not finite
} tarn_dynamics_point;
typedef struct tarn_dynamics_scan {
  size_t count;                    // spectral radii times leak rates
  tarn_dynamics_point *points;     // by leak rate, then by spectral radius
  int64_t units, delays, samples;  // delays 0: no capacities computed
  double *capacities;              // [count, delays], per delay; NULL: none
} tarn_dynamics_scan;
// Scales the recurrent matrix to each spectral radius and sets each leak rate; everything else is unchanged. Free
// systems and noise-driven ones start from states uniform in -1 .. 1, text-driven ones from zeros. Iterations, starts,
// tolerance, seed and threads are those of the options given on opening; `progress` counts points. Fails with USAGE
// (options; the model is not an echo state network), NUMERIC (its own matrix has radius 0, and another radius is to be
// tried), MEMORY, or the status of `progress`.
TARN_API tarn_status tarn_dynamics_scan_run(tarn_dynamics *dynamics, tarn_dynamics_scan **scan,
                                            const tarn_dynamics_scan_options *options) TARN_CHECKED;
TARN_API void tarn_dynamics_scan_close(tarn_dynamics_scan **scan);

// The dynamics of models, summarised over sentences, and as a page with tables and figures.
//
//   tarn_dynamics_model models[] = {{"trained", tarn_dynamics_describe(a), result_a}, ...};
//   tarn_dynamics_report_options options;
//   tarn_dynamics_report_default(&options);
//   options.output = "report", options.models = models, options.model_count = 2;
//   status = tarn_dynamics_report_write(&options);
//
// Files of the folder:
//   dynamics.html     the page, self-contained: no other file, no network and no script; light, dark, and for print
//   dynamics.md       tables and figures
//   sentences.csv     one line per model and sentence, with its exponents
//   iterations.csv    one line per model, sentence and iteration: exponents and all measures
//   training.csv      the curve over a training, if there is one
//   radii.csv         exponents and memory over spectral radius and leak rate, if computed
//   figures/NAME.svg  each figure

// Statistics over the sentences of a result. Spreads exclude missing numbers (NAN) and exponents of -INFINITY, which
// are counted by `vanished`.
typedef struct tarn_dynamics_summary {
  int64_t sentences;
  int64_t vanished;                   // sentences with first exponent -INFINITY: perturbations vanish
  tarn_dynamics_spread exponent;      // the first one
  tarn_dynamics_spread kaplan_yorke;  // dimension
  int64_t kaplan_yorke_least;         // sentences for which it is a lower bound
  tarn_dynamics_spread growth;
  tarn_dynamics_spread expansion_end;
  int64_t verdicts[TARN_DYNAMICS_VERDICT_COUNT];
  int64_t settlings[TARN_DYNAMICS_SETTLING_COUNT];
  tarn_dynamics_spread settled;  // the iteration, of settled trajectories
  // For two starts, and for the tokens of a sentence: number of sentences with pairs, number that merged, when (of
  // these), and remaining distance (of the others).
  int64_t starts, starts_synchronised, tokens, tokens_synchronised;
  tarn_dynamics_spread starts_iteration, starts_offset, tokens_iteration, tokens_offset;
  // At the last iteration of a sentence, and at the start.
  tarn_dynamics_spread participation, participation_start, rank_collapse, rank_collapse_start, token_distance,
      token_distance_start, token_cosine;
} tarn_dynamics_summary;
// Fails with MEMORY.
TARN_API tarn_status tarn_dynamics_summarise(tarn_dynamics_summary *summary,
                                             const tarn_dynamics_result *result) TARN_CHECKED;

// A model of a report.
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
  const char *output;                 // folder; created with its parents if missing
  const char *title;                  // NULL: a description (default)
  const char *input;                  // name of the text, for the caption of each figure; NULL: no text
  const tarn_dynamics_model *models;  // [model_count], at least 1
  size_t model_count;
  const tarn_dynamics_moment *moments;  // [moment_count], by increasing update, of the first model's run; NULL: none
  size_t moment_count;
  const tarn_dynamics_scan *scan;  // of the first model; NULL: none
} tarn_dynamics_report_options;
TARN_API void tarn_dynamics_report_default(tarn_dynamics_report_options *options);

// Writes all files, each atomically; dynamics.html comes last. Files of the same names are replaced, others in the
// folder are kept. Fails with USAGE (no output, no model), IO or MEMORY.
TARN_API tarn_status tarn_dynamics_report_write(const tarn_dynamics_report_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif

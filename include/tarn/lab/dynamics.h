// Models as dynamical systems, and the page about them.
#ifndef TARN_LAB_DYNAMICS_H
#define TARN_LAB_DYNAMICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/lab/series.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A model as a dynamical system: its layers are time, and the representations of a sentence's tokens are the state.
// Lyapunov exponents, transients and what they settle on, separation and synchronisation, effective dimension.
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
// The map g, by which the state x_t becomes x_{t+1}:
//   period      a stack whose layers share weights repeats some of them: "(R1 L1)*4" has g = f_L1 after f_R1,
//               "L1*8" has g = f_L1. It is iterated as often as asked, far beyond the depth that was trained. The
//               state is the residual stream, all branches added; the embeddings and the final norm are not part of
//               the map.
//   layers      a stack that shares nothing, or not everything, is a map that changes from step to step; there are as
//               many iterations as it has layers.
//   recurrence  a layer that reads its text token by token (esn, gru, lstm): an iteration is a token, and the state is
//               the hidden state, followed by the cell state in an LSTM. It is driven by the text, or runs free.
// In a translation model the stack is the encoder, which reads the source; other models have only one.
//
// How the numbers are defined; x is a state, N the number of iterations, |.| the Euclidean norm:
//   local exponents    Benettin et al. 1980: k perturbations are carried along by exact Jacobian-vector products and
//                      made orthonormal after every `every` iterations by a QR factorisation (Gram and Schmidt, each
//                      projection done twice, in double). A local exponent is the logarithm of an entry of R's
//                      diagonal, per iteration; -INFINITY where a perturbation vanishes: a random one then takes its
//                      place.
//   finite-time        exponents: the mean of the local ones of iterations 1 .. t
//   exponents          the mean of the local ones after the first `discard` iterations: natural logarithms, per
//                      iteration, the largest first
//   Kaplan-Yorke       j + (l_1 + ... + l_j) / |l_{j+1}|, with the largest j for which l_1 + ... + l_j is at least 0
//                      (Kaplan and Yorke 1979)
//   growth             the sum over iterations 1 .. t of the first local exponent: the logarithm of how much an
//                      infinitesimal perturbation has grown. Expansion ends at the iteration at which it is greatest.
//   distances          relative: |a - b| divided by the largest norm that the state has had so far
//   participation      (sum of eigenvalues)^2 / sum of squared eigenvalues of the covariance of a sentence's tokens:
//                      1 .. tokens - 1 directions
//   rank collapse      |X - mean row| / |X| in Frobenius' norm, the share of the tokens' representations X that they do
//                      not have in common (Dong, Cordonnier and Loukas 2021): 0 where all tokens are alike
// Results are equal in every bit for equal inputs, options and threads.

typedef enum tarn_dynamics_precision {
  TARN_DYNAMICS_PRECISION_DOUBLE,  // states and perturbations in double, by the reference kernels
  TARN_DYNAMICS_PRECISION_FP32,    // in fp32, by the fast kernels; QR, logarithms and measures in double all the same
  TARN_DYNAMICS_PRECISION_COUNT
} tarn_dynamics_precision;

typedef enum tarn_dynamics_map {
  TARN_DYNAMICS_MAP_AUTO,  // a period if there is one, else the recurrence of the first layer that has one, else layers
  TARN_DYNAMICS_MAP_PERIOD,
  TARN_DYNAMICS_MAP_LAYERS,
  TARN_DYNAMICS_MAP_RECURRENCE,
  TARN_DYNAMICS_MAP_COUNT
} tarn_dynamics_map;

// What a recurrence reads.
typedef enum tarn_dynamics_drive {
  TARN_DYNAMICS_DRIVE_TEXT,   // the text: what the layer's input is, in the model, at each token
  TARN_DYNAMICS_DRIVE_FREE,   // nothing: its input is zero at each iteration
  TARN_DYNAMICS_DRIVE_NOISE,  // a reservoir of tarn_dynamics_open_reservoir(): numbers uniform in -1 .. 1
  TARN_DYNAMICS_DRIVE_COUNT
} tarn_dynamics_drive;

// "double", "fp32"; "auto", "period", "layers", "recurrence"; "text", "free", "noise". NULL for other values.
TARN_API const char *tarn_dynamics_precision_name(tarn_dynamics_precision precision);
TARN_API const char *tarn_dynamics_map_name(tarn_dynamics_map map);
TARN_API const char *tarn_dynamics_drive_name(tarn_dynamics_drive drive);

// Called after every iteration with how many of all have been computed; anything but TARN_STATUS_OK stops the work and
// is returned. It is meant for stopping the work; for showing progress there is tarn/process.h.
typedef tarn_status (*tarn_dynamics_progress)(void *user, int64_t done, int64_t total);

typedef struct tarn_dynamics_options {
  tarn_dynamics_precision precision;  // default double, which takes some fifty times as long as fp32. A recurrence is
                                      // always computed in double
  tarn_fp32 products;                 // of fp32: how they are computed, as train.fp32; exact in double. Default exact
  tarn_dynamics_map map;              // default auto
  int first_layer, last_layer;        // period: the layers that are iterated, from 1, whatever they share; recurrence:
                                      // first_layer is the recurrent one. 0: found; default 0
  tarn_dynamics_drive drive;          // default text
  int64_t starts;                     // recurrence without a text: systems that start from different states, 1 .. 4096;
                                      // default 8
  int64_t iterations;                 // 1 .. 10^7, of layers at most their number; a driven recurrence ends with its
                                      // line. 0: as many as there are layers, and otherwise 1000. Default 0
  int64_t exponents;                  // of each sentence, 0 .. 4096 and at most its dimensions; default 8
  int64_t every;     // iterations between two QR factorisations, 1 .. 1000; default 1. Larger values are faster,
                     // but perturbations must not overflow or become parallel in between
  int64_t discard;   // iterations that the exponents leave out, below `iterations`; -1: half of them, of layers and
                     // of a driven recurrence none. Default -1
  double tolerance;  // relative distance below which two states count as equal; 0: 1e-9 in double, 1e-5 in
                     // fp32. Default 0
  int64_t longest_period;  // of cycles that are looked for, 1 .. 1024; default 32. The states of so many iterations
                           // are kept
  double apart;       // relative distance of the second start from the first, in a random direction, above 0; 0: there
                      // is no second start. Default 0.1
  int64_t kept;       // iterations, from the start, of which the states are kept for the plane of principal components,
                      // 0 .. 10^5; default 64
  uint64_t seed;      // of perturbations, second starts and noise; of an untrained description also of its weights.
                      // Default 1
  const char *vocab;  // of a description without data.vocab: the file of its vocabulary; NULL: that of the description
  size_t max_memory;  // bytes beside the model; more is refused with MEMORY before anything is computed; 0: no limit.
                      // Default 1e9
  bool strict;        // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;        // 0: all that the process may use; default 0
  tarn_dynamics_progress progress;  // NULL: nobody is told; default NULL
  void *user;                       // of `progress`
} tarn_dynamics_options;

TARN_API void tarn_dynamics_default(tarn_dynamics_options *options);

typedef struct tarn_dynamics tarn_dynamics;

// Opens a checkpoint, the one that tarn_checkpoint_find() chooses in a run directory, or a description (a file whose
// name ends in .yaml or .yml), whose weights are then random: those that a training with this seed begins with. Fails
// with USAGE (options; a map that the model does not have: the line says what may be iterated), IO, DATA or MEMORY.
TARN_API tarn_status tarn_dynamics_open(tarn_dynamics **dynamics, const char *path,
                                        const tarn_dynamics_options *options) TARN_CHECKED;
// An echo state network without a model: the reservoir of tarn_reservoir_open() for inputs of one column, free or
// driven by noise. options->precision has no influence. Fails with USAGE (also: drive text), DATA, NUMERIC or MEMORY.
TARN_API tarn_status tarn_dynamics_open_reservoir(tarn_dynamics **dynamics, const tarn_esn_options *reservoir,
                                                  const tarn_dynamics_options *options) TARN_CHECKED;
TARN_API void tarn_dynamics_close(tarn_dynamics **dynamics);

// What is iterated. Texts are valid until close.
typedef struct tarn_dynamics_info {
  const char *path;           // the file that was opened; "" for a reservoir without a model
  const char *text;           // the map in a line: encoder "(R1 L1)*4": an iteration is layers 1 to 2, "R1 L1"
  const char *pattern;        // of the stack: "(R1 L1)*4"; "" without a model
  tarn_dynamics_map map;      // never auto
  tarn_dynamics_drive drive;  // of a recurrence
  tarn_dynamics_precision precision;
  tarn_fp32 products;
  const char *device;           // that computes it: "reference", "cpu"
  bool trained;                 // false: weights are random
  int64_t update;               // optimiser steps that made it; 0 of an untrained description
  int first_layer, last_layer;  // of an iteration, from 1; of layers all of them; 0 without a model
  int layers;                   // that the stack has
  int64_t depth;  // iterations that the trained model does, the last of a period counted even if it is not
                  // whole; 0 for recurrences
  int64_t width;  // numbers of a token's state; of a recurrence of its whole state
  double spectral_radius, leak_rate;  // of an echo state network; NAN otherwise
} tarn_dynamics_info;
TARN_API const tarn_dynamics_info *tarn_dynamics_describe(const tarn_dynamics *dynamics);

// Takes the sentences, in place of earlier ones: `count` lines of lengths[i] bytes, or those of a text file ("-":
// standard input); of a translation model they are sources. A recurrence that is not driven by text needs none. Fails
// with DATA (a line without tokens or too long for the model, invalid UTF-8 with `strict`), USAGE (there is no model),
// IO or MEMORY.
TARN_API tarn_status tarn_dynamics_encode(tarn_dynamics *dynamics, const char *const *lines, const size_t *lengths,
                                          size_t count) TARN_CHECKED;
TARN_API tarn_status tarn_dynamics_encode_file(tarn_dynamics *dynamics, const char *path) TARN_CHECKED;

// What a trajectory does in the end, judged by the states of the last longest_period iterations.
typedef enum tarn_dynamics_settling {
  TARN_DYNAMICS_SETTLING_FIXED_POINT,  // it stands still
  TARN_DYNAMICS_SETTLING_CYCLE,        // it returns after `period` iterations, at most longest_period
  TARN_DYNAMICS_SETTLING_NONE,         // neither within the iterations
  TARN_DYNAMICS_SETTLING_DIVERGED,     // a state was not finite
  TARN_DYNAMICS_SETTLING_UNKNOWN,      // not asked: the map changes from step to step (layers, driven recurrences)
  TARN_DYNAMICS_SETTLING_COUNT
} tarn_dynamics_settling;

// What perturbations do.
typedef enum tarn_dynamics_verdict {
  TARN_DYNAMICS_VERDICT_CONTRACTING,  // the first exponent is at most 0, and perturbations never grew e-fold
  TARN_DYNAMICS_VERDICT_TRANSIENT,    // it is at most 0, but they grew e-fold or more before: transient chaos, if the
                                      // growth is exponential
  TARN_DYNAMICS_VERDICT_EXPANDING,    // the first exponent is above 0: chaos, where the states stay bounded
  TARN_DYNAMICS_VERDICT_DRIFTING,  // it is above 0, but the state has grown by half or more as well, and perturbations
                                   // less than e-fold beyond it, as in a residual stream that layers only add to
  TARN_DYNAMICS_VERDICT_DIVERGED,  // a state was not finite
  TARN_DYNAMICS_VERDICT_UNKNOWN,   // no exponents were asked for
  TARN_DYNAMICS_VERDICT_COUNT
} tarn_dynamics_verdict;

// "fixed point", "cycle", "none", "diverged", "unknown"; "contracting", "transient", "expanding", "drifting",
// "diverged", "unknown".
TARN_API const char *tarn_dynamics_settling_name(tarn_dynamics_settling settling);
TARN_API const char *tarn_dynamics_verdict_name(tarn_dynamics_verdict verdict);

// Whether two trajectories became one.
typedef struct tarn_dynamics_synchrony {
  bool there;         // false: there are no two (no second start; sentences of one token; a recurrence's tokens)
  bool synchronised;  // their distance is below the tolerance from `iteration` to the end
  int64_t iteration;  // -1: not synchronised
  double offset;      // their relative distance at the end; of tokens, the mean over pairs
  double wander;  // how much that changed in the last longest_period iterations (largest - smallest): an offset that
                  // does not wander is constant, they have settled apart
  int64_t lag;    // two starts that settled: iterations by which the second is behind the first (on one cycle, in
                  // another phase), 0 .. longest_period - 1; -1: none brings them below the tolerance
} tarn_dynamics_synchrony;

// A sentence, or a system of a recurrence. Arrays over iterations have `iterations` + 1 numbers, of the start and
// after each iteration, or `iterations` rows, one for each, where that is said. They are NAN after a divergence, and
// where a measure does not exist: those of pairs for a single token and for recurrences.
typedef struct tarn_dynamics_sentence {
  int64_t line;             // of the text, from 1; of systems without a text their number
  int64_t tokens;           // of the sentence; 1 for a recurrence
  int64_t dimensions;       // of the state
  int64_t iterations;       // the rows of the arrays
  int64_t diverged;         // the iteration whose state was the first not to be finite; -1: none
  int64_t counted;          // iterations that the exponents are the mean of; 0: there are no exponents (NAN)
  double *exponents;        // [exponents]
  double *local;            // [iterations, exponents]; with `every` above 1 the same in all iterations between two QRs
  double *finite_time;      // [iterations, exponents]
  double kaplan_yorke;      // dimension; 0 where the first exponent is negative; NAN without exponents
  bool kaplan_yorke_least;  // too few exponents: the dimension is at least this (their number)
  double state_growth;      // of the state's norm in the iterations counted: natural logarithm, per iteration; NAN
                            // without exponents, and where the first of them begins with zeros
  double growth;            // greatest, natural logarithm, at least 0
  int64_t expansion_end;    // the iteration at which it is greatest; 0: perturbations never grew
  tarn_dynamics_verdict verdict;
  tarn_dynamics_settling settling;
  int64_t period;   // 1 for a fixed point; 0: not settled
  int64_t settled;  // the iteration from which on it holds, to the end; -1: not settled. Of cycles it is judged by
                    // 16 random projections of the states
  double residual;  // least relative distance of the last state from those up to longest_period before; NAN: not
                    // judged
  tarn_dynamics_synchrony starts, between_tokens;
  double *norm;            // root mean square of the state's numbers
  double *step;            // relative distance from the state before; NAN at the start
  double *start_distance;  // relative distance of the two starts
  double *token_distance;  // mean Euclidean distance of pairs of tokens
  double *token_cosine;    // mean cosine of pairs of tokens
  double *participation;
  double *rank_collapse;
  double *plane;  // [kept + 1, tokens, 2], kept of the result: the tokens in the plane of the two principal
                  // components of all states that were kept; NULL: none were
} tarn_dynamics_sentence;

// It owns everything that it points to, until close.
typedef struct tarn_dynamics_result {
  int64_t count;                           // sentences
  tarn_dynamics_sentence *sentences;       // [count]
  int64_t iterations;                      // the most of a sentence
  int64_t exponents;                       // computed for each
  int64_t every, discard, longest_period;  // as used
  double tolerance, apart;                 // as used
  int64_t kept;                            // iterations in `plane`, at most what was asked
  double plane_share[2];                   // of the variance of the states kept, along each principal component
  int64_t diverged;                        // sentences that did
  int threads;
  double seconds;       // that it took
  size_t memory_bytes;  // beside the model
  struct tarn__dynamics_memory *memory;
} tarn_dynamics_result;

// Computes everything. Fails with USAGE (no sentences; more exponents than a sentence has dimensions; iterations beyond
// the depth of layers: the line says what may be iterated), UNSUPPORTED (a part has no rule for perturbations, or only
// in double: the line names it), MEMORY, or what `progress` returns. A state that overflows is no failure: `diverged`.
TARN_API tarn_status tarn_dynamics_run(tarn_dynamics *dynamics, tarn_dynamics_result **result) TARN_CHECKED;
TARN_API void tarn_dynamics_result_close(tarn_dynamics_result **result);

// Where numbers lie, over sentences.
typedef struct tarn_dynamics_spread {
  int64_t count;                             // numbers, NAN left out; 0: the rest is NAN
  double mean, deviation;                    // deviation: of the sample, 0 for one number
  double least, lower, median, upper, most;  // quartiles are interpolated linearly (type 7 of Hyndman and Fan 1996)
} tarn_dynamics_spread;

// The numbered checkpoints of a run directory by rising update, for a curve over a training.
typedef struct tarn_dynamics_checkpoints {
  int64_t count;
  char **paths;      // [count]
  int64_t *updates;  // [count]
} tarn_dynamics_checkpoints;
// Fails with USAGE (it is no directory), DATA (there are none), IO or MEMORY; *checkpoints is then empty.
TARN_API tarn_status tarn_dynamics_checkpoints_find(tarn_dynamics_checkpoints *checkpoints,
                                                    const char *run) TARN_CHECKED;
TARN_API void tarn_dynamics_checkpoints_close(tarn_dynamics_checkpoints *checkpoints);

// The echo state property: exponents and memory of an echo state network over its spectral radius and leak rate.
typedef struct tarn_dynamics_scan_options {
  const double *spectral_radii,
      *leak_rates;                  // values to try: radii 0 .. 1000, leak rates above 0, at most 1; NULL: its own.
                                    // Default NULL
  size_t radius_count, leak_count;  // of them, 1 or more where they are given; default 0
  int64_t delays;   // memory capacity: the largest delay, 1 .. 10^4; 0: twice the units, at most 1000; -1: none is
                    // computed. Default 0
  int64_t samples;  // memory capacity: inputs that the readouts are fitted to, and as many again that judge them, 100
                    // .. 10^6, after as many as delays, at least 500, that are left out. Default 2000
  double ridge;     // of these readouts, at least 0; default 1e-8
  double input_scaling;  // the one input of noise has weights uniform in +-input_scaling; above 0; default 0.1
} tarn_dynamics_scan_options;
TARN_API void tarn_dynamics_scan_default(tarn_dynamics_scan_options *options);

typedef struct tarn_dynamics_point {
  double spectral_radius, leak_rate;
  double free;    // largest exponent, with an input of zeros: median over systems; -INFINITY where
                  // perturbations vanish; NAN: no system had one
  double driven;  // the same, driven by the text that was taken, or without one by noise
  double
      share_synchronised;  // of the driven systems, whose two starts became one: 1 where the echo state property holds
  int64_t diverged;        // driven systems whose states were not finite
  double memory_capacity;  // sum over delays k of the squared correlation, on inputs that it was not fitted to, of
                           // u(t - k) and its best linear readout of the state at t; u uniform in -1 .. 1 (Jaeger
                           // 2002). At most the units, and about 1 / samples for each delay that is forgotten. NAN: not
                           // computed, or states that are not finite
} tarn_dynamics_point;
typedef struct tarn_dynamics_scan {
  size_t count;                    // of spectral radii times leak rates
  tarn_dynamics_point *points;     // leak rate by leak rate, its spectral radii one after the other
  int64_t units, delays, samples;  // delays 0: no capacities were computed
  double *capacities;              // [count, delays], of each delay; NULL: none
} tarn_dynamics_scan;
// Scales the recurrent matrix to each spectral radius and puts in each leak rate; everything else stays. Free systems
// and those of noise start from states uniform in -1 .. 1, those of a text from zeros. Iterations, starts, tolerance,
// seed and threads are those of the options with which it was opened; `progress` is told of points. Fails with USAGE
// (options; the model is no echo state network), NUMERIC (its own matrix has the radius 0, and another one is to be
// tried), MEMORY, or what `progress` returns.
TARN_API tarn_status tarn_dynamics_scan_run(tarn_dynamics *dynamics, tarn_dynamics_scan **scan,
                                            const tarn_dynamics_scan_options *options) TARN_CHECKED;
TARN_API void tarn_dynamics_scan_close(tarn_dynamics_scan **scan);

// What models do as dynamical systems, summed over sentences, and as a page with tables and
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

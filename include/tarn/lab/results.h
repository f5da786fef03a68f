// Results of trainings: comparison, report, and significance tests of the scores of systems on one test set.
#ifndef TARN_LAB_RESULTS_H
#define TARN_LAB_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/lab/sequential.h"
#include "tarn/measure.h"
#include "tarn/plan.h"
#include "tarn/score.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Results of trainings: reads run directories, groups them into configurations over seeds, and computes convergence
// curves, the area under them (AUCC), times, sizes, test scores and verdicts. `tarn compare` prints these results and
// `tarn report` draws them; both compute nothing themselves.
//
// Input. A run directory has config.yaml, log.jsonl and, after the training, result.json (docs/training.md); test.json
// has its scores on a test set, test.hyp its translations, test.pairs its answers to minimal pairs. A sweep's folder
// has sweep.json, and a run directory VARIANT/seed-N for each variant and seed. Nothing is written, so runs may be read
// while they train.
//
// Names of scores. Each number in the log is a series, with the same name as in TensorBoard: "valid/bleu",
// "valid/loss", "valid/nll", "valid/ppl" (exp(nll), computed here), "train/loss", "train/nll", "train/ppl", "train/lr",
// "train/grad_norm", "test/bleu" of the scored set "test", "train/tokens_per_second", "backskip/cosine/encoder 3 R",
// ... In arguments, "bleu" means "valid/bleu", and so does "valid_bleu", the spelling of the log: / and _ are
// equivalent. tarn/measure.h says whether less is better; for anything that is not a measure, more is better.
//
// Times are seconds of the training clock (train.clock), which is stopped during validation and saving. Unknown values
// are NAN for a double, -1 for an integer, NULL for a text.
//
//   tarn_results *results;
//   tarn_results_table *table = NULL;
//   tarn_results_options options;
//   tarn_results_default(&options);
//   status = tarn_results_open(&results, paths, count);
//   if (status == TARN_STATUS_OK) status = tarn_results_compare(&table, results, &options);
//   ... table->rows[g].aucc_mean.mean of results->groups[g].name ...
//   tarn_results_table_close(&table);
//   tarn_results_close(&results);

// The state of a run.
typedef enum tarn_results_state {
  TARN_RESULTS_FINISHED,    // by result.json: a limit was reached
  TARN_RESULTS_FAILED,      // by result.json: a number was not finite, or the disk was full, ...; see `message`
  TARN_RESULTS_UNFINISHED,  // no result.json: training, stopped or killed
  TARN_RESULTS_PENDING,     // named by the sweep, but without a directory: no config, no series
  TARN_RESULTS_STATES
} tarn_results_state;
// "finished", "failed", "unfinished", "pending"; "?" for another value.
TARN_API const char *tarn_results_state_name(tarn_results_state state);

// One point of a curve.
typedef struct tarn_results_point {
  double seconds;  // training clock
  int64_t step;    // updates
  double epoch;    // passes over the data; NAN if the log does not have it
  double value;    // finite
} tarn_results_point;

// One score over a run, in the order of the log: steps and times never decrease. The validation of an averaged
// checkpoint is not a point of a curve; it is in the run's `average_*`.
typedef struct tarn_results_series {
  const char *name;  // "valid/bleu"
  bool less;         // less is better
  const tarn_results_point *points;
  size_t count;  // at least 1
} tarn_results_series;

// A layer of a drawn stack. Its place is its index, 0 next to the embeddings.
typedef struct tarn_results_layer {
  const char *kind;    // name in `kinds:`
  const char *set;     // name of its weights: "layer3", "R1"
  const char *mixer;   // word of the mixer: "attention", "none", ...
  bool frozen;         // permanently random: a reservoir
  bool matrices;       // a reservoir of frozen matrices with trained norms and biases
  bool partly_frozen;  // trained, except W_in, W_rec or W_out of its recurrence
  bool shared;         // another layer of the stack has the same weights
  int32_t first;       // the lowest layer with the same weights
  bool empty;          // no token mixer: the FFN only
} tarn_results_layer;

typedef struct tarn_results_stack {
  const tarn_results_layer *layers;  // from bottom to top
  int32_t count;                     // layers
  int32_t trained, frozen;           // places; they sum to `count`
  const char *pattern;               // "(R L)*4"
} tarn_results_stack;

// A layer frozen during the training, by staged or automatic freezing.
typedef struct tarn_results_freeze {
  double seconds;
  int64_t step;
  const char *layer;  // as in the log: "encoder.layer1"
} tarn_results_freeze;

// The identity of a run's scored set (sets in the configuration), as hashes: of the data used by the loss, and by BLEU
// (NULL: not computed).
typedef struct tarn_results_set {
  const char *name, *hash, *bleu_hash;
} tarn_results_set;

// One run directory.
typedef struct tarn_results_run {
  const char *path;  // of the directory
  size_t group;      // index into tarn_results.groups
  int64_t seed;
  tarn_results_state state;
  const char *message;        // of a failed run: the reason, one line
  const char *version;        // of the program that wrote result.json
  const tarn_config *config;  // NULL: none yet
  const char *config_text;    // the text of config.yaml; NULL: none yet
  const char *metric;         // valid.metric: "bleu", "loss", ...; NULL: none yet

  const tarn_results_series *series;  // sorted by name
  size_t series_count;
  const tarn_results_freeze *freezes;  // in the order of the log
  size_t freeze_count;
  const char *signature;       // of the validation BLEU
  const char *config_changed;  // evidence that config.yaml is not the one of the training; or NULL
  // log_changed: evidence that log.jsonl is not the one written by the training: it lost lines or was edited, so curves
  // and measurements on them are not those of the training. NULL: it is the original, or there is no evidence.
  // log_accepted: the same for a log with which the training continued anyway (--accept-log), with the update; NULL and
  // -1: never.
  const char *log_changed, *log_accepted;
  int64_t log_accepted_step;

  // The end of the run so far: from result.json, or else from the last line of the log.
  const char *end;  // of a finished run: "updates", "epochs", "minutes", "patience" or "pass"
  double seconds;
  int64_t step;
  double epoch;
  const char *clock;      // "wall" or "cpu"
  const char *processor;  // its model, of the machine that ended the training; NULL: not recorded
  const char *kernels;    // the instruction set they are compiled for, or "cuda"; NULL: not recorded
  int64_t threads;
  int64_t parameters, trained_parameters, frozen_parameters;  // each parameter counted once; the first is the sum of
                                                              // the others
  int64_t shared_parameters;                                  // saved by sharing
  int64_t planned_bytes, peak_bytes;                          // memory of the process
  int64_t best_update;                                        // of the best validation by valid.metric; -1: none
  tarn_cost cost;
  const char *data_hash;         // of the training data; NULL: not recorded
  const char *valid_hash;        // of the validation data used by the loss
  const char *config_hash;       // of the config.yaml used in training; NULL: unknown
  const char *valid_bleu_hash;   // of the data used by BLEU; NULL: none, or not written by an earlier version
  const tarn_results_set *sets;  // the scored sets
  size_t set_count;

  const char *reused;  // the run of another sweep or record that this is a copy of; NULL: none

  // The test set, from test.json (docs/experiments.md).
  double test_bleu, test_chrf;
  double test[TARN_MEASURES];                        // of a labelled set or of a text, by measure; NAN: unknown
  const char *test_set;                              // prefix of the shard, or file of the text; NULL: none
  int64_t test_size;                                 // rows of the shard, or bytes of the text; -1: unknown
  int64_t test_window, test_stride;                  // of a text, as in tarn/lab/sweep.h; -1: unknown
  double test_blimp;                                 // of a language model: accuracy on minimal pairs in percent
  const char *test_signature, *test_chrf_signature;  // of BLEU and of chrF
  const char *test_checkpoint;                       // name of its file; NULL: unknown
  const char *test_source;                           // source file, one sentence per line
  const char *test_reference;                        // reference file, one sentence per line
  const char *test_precision;  // of the arithmetic: "fp32", "bf16", "int8", "int4"; NULL: from an earlier version,
                               // which means fp32
  const char *test_folder;     // of a language model: folder of minimal pairs
  int64_t test_sentences, test_beam, test_pairs;
  double test_length_penalty;                 // NAN: unknown, or without a beam
  int64_t test_iterations, test_length_beam;  // of models that have them; -1: none
  double test_placeholder_penalty;            // the same; NAN: none
} tarn_results_run;

// A configuration: runs that differ only in the seed.
typedef struct tarn_results_group {
  const char *name;       // the variant's name in a sweep, else the name of the run directory (above "seed-N"), or its
                          // path if that name is taken, or "NAME (2)" if both are; unique
  const char *changes;    // in a sweep: the variant's settings, "key=value key=value"; else NULL
  const char *equalized;  // in a sweep: changes by `equalize`, in the same form; NULL: none
  const char *grid;       // in a sweep: the point of the variant's grid, "train.lr=0.0001"; NULL: no grid
  // Only one point of a grid is a group, under the variant's name in the sweep file: among those with the fewest failed
  // runs, the point whose finished runs have the best mean of their best valid.metric. `chosen` names this point and
  // gives the scores of the others.
  const char *chosen;  // NULL: no grid
  const size_t *runs;  // indices into tarn_results.runs, sorted by seed
  size_t run_count;
  size_t finished, failed;  // number of runs in these states
  // From the first run that has started (all have the same); counts are 0 and pointers NULL if none has.
  tarn_results_stack encoder, decoder;
  double layer_drop;  // the larger of encoder.layerdrop and decoder.layerdrop; 0: none
} tarn_results_group;

typedef struct tarn_results {
  const tarn_results_run *runs;
  size_t run_count;
  const tarn_results_group *groups;  // in the order of the sweep or of the arguments
  size_t group_count;
  // Of the sweep, if all runs belong to one.
  const char *sweep;                  // its name
  size_t baseline;                    // group of its baseline; group_count: none
  double budget;                      // seconds: its T-hat
  tarn_sequential_design sequential;  // max_seeds 0: none
  const int64_t *seeds;               // (seed_count) of the design: a look is at the first of them
  size_t seed_count;
  struct tarn__results_memory *memory;
} tarn_results;

// Reads run directories, sweep folders, and folders with both, at most four levels deep, in the order of the arguments
// and of their names. Fails, naming the file or run, with
// - USAGE: no path, a folder without runs, a run given twice, two runs with the same configuration and seed, an invalid
//   config.yaml;
// - DATA: a malformed file (an incomplete last line of the log, left by a kill, is ignored), a number out of range,
//   decreasing times or steps, a run directory written by a later version of the program;
// - IO: a path cannot be read, or is not a folder; MEMORY.
TARN_API tarn_status tarn_results_open(tarn_results **results, const char *const *paths, size_t count) TARN_CHECKED;
TARN_API void tarn_results_close(tarn_results **results);

// The series with this name, or else with "valid/" before it, or with the other spelling. NULL if there is none.
TARN_API const tarn_results_series *tarn_results_find(const tarn_results_run *run, const char *name);
// Fails with USAGE if tarn_results_find() finds no such series in any run; the message suggests the nearest name.
TARN_API tarn_status tarn_results_check_name(const tarn_results *results, const char *name) TARN_CHECKED;

// --- comparison

typedef struct tarn_results_options {
  const char *metric;  // the score; NULL (default): valid/bleu if all finished runs have it, else the common
                       // valid.metric of all, else valid/loss
  double budget;  // T-hat in seconds; 0 (default): the sweep's, else train.max_minutes if all runs have the same, else,
                  // if no run has it, the time of the longest run (on the table's processor)
  const char *baseline;  // name of a group; NULL: the sweep's, else the first group (default)
  int64_t resamples;     // of the bootstrap, 40 .. 1,000,000; 0: no verdicts on tests (default 1000)
  uint64_t seed;         // of the bootstrap (default 12345, as in sacreBLEU)
} tarn_results_options;
TARN_API void tarn_results_default(tarn_results_options *options);

// Measurements of a finished run; NAN and -1 for other runs.
typedef struct tarn_results_measures {
  // AUCC: the integral of the curve g from 0 to T-hat, in score times minutes, by the trapezoidal rule; and the same
  // divided by T-hat in minutes, an average score. g is the score, or its negative if less is better, so a higher AUCC
  // is always better. The curve is cut at T-hat by linear interpolation. A run that reached another limit before T-hat
  // keeps its last value until T-hat (`held`). The first point is at time 0: the validation there (valid.at_start).
  // Without it, BLEU is assumed to start at 0 (`assumed_start`), other validation scores are refused, and training
  // scores, which are means over the updates before a line, keep their first value (`assumed_start`).
  double aucc, aucc_mean;
  bool held;           // the last value was held for more than 1 % of T-hat
  bool assumed_start;  // the value at time 0 is not in the log
  // The run, also one that failed, was not on the table's `processor`: it is in no mean, verdict or curve of a time, an
  // energy, an area over time or the memory. Where T-hat is the time of the longest run, that of `processor`, there is
  // none for this run: the areas, budget_step and budget_epoch are NAN, and the others are of the whole training.
  bool elsewhere;

  // Best value of the score among the validations up to T-hat, and when it was first reached. If T-hat is the run's own
  // limit, the validation at its end counts, although the last update ended a little after T-hat. best_seconds is NAN
  // if no validation is better than the first one, at time 0 or later: no time to best was observed.
  double best, best_seconds, best_epoch;
  int64_t best_step;
  // Smallest valid/loss of the same validations, and when; min_loss_seconds is NAN if none is smaller than the first.
  double min_loss, min_loss_seconds;
  int64_t min_loss_step;
  double epoch_seconds;              // training time of one pass over the data, mean over the run
  double budget_step, budget_epoch;  // position of the run at T-hat, by linear interpolation; or its end, if earlier
  double test_bleu, test_chrf, test_blimp;  // as in the run
  double test_score;                        // the run's `test` of the table's test_measure
  // "dynamics/exponent" of the last update up to T-hat with a line of exponents: the largest Lyapunov exponent at the
  // end of training (dynamics.input). NAN if no sentence has a finite one there.
  double exponent;
  double peak_bytes;  // as in the run

  // Energy and operations, as in the run. Those until the best validation refer to that of `best`: NAN if valid.metric
  // selected a different one than the table's score and T-hat.
  double joules, epoch_joules, best_joules, co2_grams;
  double token_operations, operations, best_operations, moved_bytes;

  // Training loss, with dropout and label smoothing, up to T-hat: the smallest value of a line of the log, which is the
  // mean over the updates before it (train.log_every); when it was reached (NAN if no line is below the first); and the
  // mean over the last epoch of training (or over all of it, if less than one), each line weighted by its share of the
  // epoch.
  double min_train_loss, min_train_loss_seconds, epoch_train_loss;
  int64_t min_train_loss_step;
} tarn_results_measures;

// Mean and sample standard deviation (n - 1) over `count` runs; NAN for no run, and the deviation also for one run.
typedef struct tarn_results_statistic {
  double mean, sd;
  size_t count;
} tarn_results_statistic;

// --- verdicts
//
// A tarn_results_verdict is the only judgement on whether two configurations differ; every output of a comparison uses
// it. It is about the difference of the means over all runs of either configuration (of times: over those on one
// processor, see below).
//
// There are two sources of random variation: other seeds would give other models, and other sentences (or minimal
// pairs) another test. Both count, as for several readers who read the same cases under several methods (Obuchowski and
// Rockette, "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests", Communications in
// Statistics 1995). Seeds are the readers, nested in their configuration, and sentences the cases, the same for all:
//
//   variance = s_a^2 / n_a + s_b^2 / n_b + max(0, v - w_a - w_b)
//
// - s^2 is the sample variance of a configuration's scores over its n seeds;
// - v is the variance of the difference of the means over bootstrap resamples of the test's items, with every run
//   scored on the same items (minimal pairs are drawn within their paradigm);
// - w is each run's own part of v, the sum over runs of the variance over resamples of (score - mean score of the
//   configuration) / (n (n - 1)), which s^2 already includes.
//
// Resampling the few seeds with replacement, like sentences, would underestimate their variance by a factor (n - 1) / n
// and use normal quantiles: with three seeds the 95 % intervals of such a percentile bootstrap cover the truth in 80 %
// of experiments in which seeds dominate the variation, and those of sentences alone in almost none. Therefore the
// seeds' part is analytic, and the interval is difference +- t * sqrt(variance), where t is Student's with
// Satterthwaite's degrees of freedom (Biometrics Bulletin 1946; Welch, Biometrika 1947; Hillis, Statistics in Medicine
// 2007, for this variance): each s^2 / n has n - 1, the items' part their number less 1. tests/unit/test_verdict.c
// simulates the coverage: with 3 to 10 seeds it is 93 to 97 %, whatever the shares of seeds and items in the variance,
// if the standard deviation over seeds of one configuration is at most 3 times that of the other (96.5 %, the maximum,
// with three seeds and no variation of items). Beyond that it may drop with 3 seeds on the more spread side, to 92 % if
// the other side does not depend on its seed at all. All of this assumes normal distributions, which trainings that
// occasionally fail do not have.
//
// p has no more than n_a + n_b - 2 degrees of freedom (with one seed on both sides: those of the items). A seeds' part
// that is small by chance would leave the many degrees of the items; an interval of 95 % hardly suffers from that, but
// the small p that many comparisons ask for lie where the tails of normal and Student's distributions differ most: with
// 3 seeds, items a fifth of the seeds' part and a baseline that varies a third as much as the others, 11 % of tables of
// 6 comparisons would have a false verdict, and 29 % of 81. So p may be above 0.05 where the interval excludes 0.
//
// Seeds are not paired: the same seed gives two models the same order of the data but different initial weights, and
// the effects on their scores are nearly uncorrelated. With a correlation the difference would be more certain than
// stated, not less. Scores without test items (from the log: best, areas, times, losses) have only the seeds' part,
// which is Welch's test; it is about other seeds with the same validation data.
//
// Times, energies, areas over time and memory also depend on the processor, its kernels and the number of threads.
// Where a table has runs of several, these are of the runs on one alone, in means, verdicts, ratios and curves: the one
// on which most configurations have the three runs that a verdict needs, if the sweep's baseline has them too; of
// several the one on which most have any, then that with most runs, then the first. Where some runs say what they ran
// on, it is one of theirs. The table's `processor` names it.
//
// With one seed each, only items are resampled, and the verdict is about these two models, not about their
// configurations (scores from the log get none). With two seeds there is an interval, which is wide, but no verdict.
// With three or more on both sides there is a verdict.

// The basis of a verdict, or the reason why there is none.
typedef enum tarn_results_basis {
  TARN_RESULTS_CONFIGURATIONS,  // three or more seeds on both sides
  TARN_RESULTS_MODELS,          // one seed each, resampled items: the verdict is about these two models
  TARN_RESULTS_ONE_SEED,        // none: one seed on one side, or on both without items
  TARN_RESULTS_TWO_SEEDS,       // none: two seeds on one side
  TARN_RESULTS_NO_ITEMS,        // none: a test score with missing outputs of a run
  TARN_RESULTS_NO_RESAMPLES,    // none: a test score, and options.resamples is 0
  TARN_RESULTS_OTHER_LOSSES,  // none: losses with different label smoothing, on different validation data, or of models
                              // that predict different things
  TARN_RESULTS_OTHER_SOURCES,     // none: energies measured by different sources
  TARN_RESULTS_NO_SPREAD,         // none: runs of different seeds have equal scores, so the variation is unknown
  TARN_RESULTS_NO_SCORES,         // none: no finished run on one side has the score
  TARN_RESULTS_OTHER_PROCESSORS,  // none: times, energies, areas or memory, without three runs of each side on the
                                  // table's processor
  TARN_RESULTS_BASES
} tarn_results_basis;

typedef enum tarn_results_decision {
  TARN_RESULTS_NONE,       // no verdict: see the basis
  TARN_RESULTS_UNDECIDED,  // p > 0.05; of a sequential design also equivalent, closed, or not looked at yet
  TARN_RESULTS_BETTER,     // p <= 0.05 (of a design its alpha), and better; of a neutral measure larger
  TARN_RESULTS_WORSE
} tarn_results_decision;

// A comparison of one configuration with another. Numbers without a basis are NAN.
typedef struct tarn_results_verdict {
  tarn_results_decision decision;
  tarn_results_basis basis;
  bool less;                // less is better
  size_t runs, other_runs;  // of the configuration and of the other one, as many as the verdict is of
  double difference;        // mean minus the other one's mean
  double low, high;         // 95 % interval, for this comparison alone
  double error, freedom;    // standard error, degrees of freedom of p
  double seed_error;        // the seeds' part of `error`: error^2 = seed_error^2 + the items' variance
  double p;                 // two-sided, corrected for multiple comparisons (Holm 1979)
  double p_single;          // the same without the correction
  size_t comparisons;       // number of comparisons corrected together: those of one measure against the baseline
  const int64_t *seeds;     // (seed_count) common seeds
  const double *by_seed;    // (seed_count) differences between the runs of these seeds
  size_t seed_count;
  const char *words;  // "better", "undecided", "better, of these two models", "no verdict (two seeds)"
} tarn_results_verdict;

// "< 0.001", "0.036", or "" for NAN: the printed form of every p.
enum { TARN_RESULTS_P_TEXT = 16 };
TARN_API void tarn_results_p(char text[TARN_RESULTS_P_TEXT], double p);

// What is compared: scores, of tests and from the log, then measures of training.
typedef enum tarn_results_judged_measure {
  TARN_RESULTS_JUDGED_TEST_BLEU,
  TARN_RESULTS_JUDGED_TEST_CHRF,
  TARN_RESULTS_JUDGED_TEST_BLIMP,
  TARN_RESULTS_JUDGED_TEST_SCORE,  // of test_measure, by seeds only: rows of the test are not resampled
  TARN_RESULTS_JUDGED_BEST,
  TARN_RESULTS_JUDGED_AUCC,      // divided by T-hat
  TARN_RESULTS_JUDGED_EXPONENT,  // neutral
  TARN_RESULTS_JUDGED_SCORES,
  TARN_RESULTS_JUDGED_MIN_LOSS = TARN_RESULTS_JUDGED_SCORES,
  TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS,
  TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS,
  TARN_RESULTS_JUDGED_BEST_SECONDS,
  TARN_RESULTS_JUDGED_EPOCH_SECONDS,
  TARN_RESULTS_JUDGED_BUDGET_STEP,
  TARN_RESULTS_JUDGED_BUDGET_EPOCH,
  TARN_RESULTS_JUDGED_PEAK_BYTES,
  TARN_RESULTS_JUDGED_EPOCH_JOULES,
  TARN_RESULTS_JUDGED_BEST_JOULES,
  TARN_RESULTS_JUDGED_BEST_OPERATIONS,
  TARN_RESULTS_JUDGED_MEASURES
} tarn_results_judged_measure;

// The verdicts on one measure: every row against the baseline, corrected together, and the leading row.
typedef struct tarn_results_judged {
  const char *key;  // "test_bleu"
  bool less;        // less is better
  bool neutral;     // no value is better than another: words are larger, smaller; no row leads
  bool planned;  // the sweep's sequential design judges it: the verdicts are those of the latest look, with its runs,
                 // repeated intervals, p with all looks counted, and the words of tarn_sequential_words(); no row leads
  size_t rows;   // rows with the score
  size_t comparisons;                    // verdicts with a p
  const tarn_results_verdict *verdicts;  // (row_count); that of the baseline is unused
  // The row that is significantly better than every other row with the score, each p multiplied by their number;
  // row_count: none. Tables mark only this row.
  size_t leader;
} tarn_results_judged;

// A configuration in the comparison. Statistics cover finished runs only.
typedef struct tarn_results_row {
  size_t group;   // index into tarn_results.groups; rows are in the order of the groups
  bool baseline;  // this is the baseline
  tarn_results_statistic aucc, aucc_mean, best, best_seconds, min_loss, min_loss_seconds, epoch_seconds, budget_step,
      budget_epoch, test_bleu, test_chrf, test_blimp, test_score, exponent, peak_bytes, min_train_loss,
      min_train_loss_seconds, epoch_train_loss, joules, epoch_joules, best_joules, co2_grams, token_operations,
      operations, best_operations, moved_bytes;
  size_t held, assumed_start;  // number of finished runs with these flags
  // The regular configuration (no frozen or shared layer, no LayerDrop) with the same number of updatable layers in
  // encoder and decoder, and the one with the same number of layers in total: the baseline if it is one, else the first
  // such group with a time to best; group_count: none. The ratios are mean time to best over that group's mean time to
  // best; NAN if the row has none.
  size_t regular, regular_deep;
  double time_ratio, time_ratio_deep;
} tarn_results_row;

typedef struct tarn_results_table {
  const char *metric;  // full name: "valid/bleu"
  bool less;           // less is better
  double budget;       // T-hat in seconds
  const char *clock;   // of all runs
  // What times, energies, areas over time and memory are of, where runs are of several processors: "AMD EPYC
  // (avx512_bf16, 1 thread)". NULL: all runs are of one.
  const char *processor;
  int64_t resamples;  // of the bootstrap
  size_t baseline;    // index into rows
  // The measure for comparing tests with labels and of texts: the table's metric if the tests have it, else the first
  // one that all have of accuracy, Pearson's correlation, bits per character, bits per byte and perplexity; NULL: no
  // such test.
  const tarn_measure *test_measure;
  const tarn_results_row *rows;
  size_t row_count;
  const tarn_results_measures *measures;  // (results->run_count)
  tarn_results_judged judged[TARN_RESULTS_JUDGED_MEASURES];
  // (row_count) The verdicts of the sweep's sequential design, on `sequential_measure` of `judged`; that of the
  // baseline is unused. NULL: there is no design, or options name another baseline, metric or budget, or no resamples
  // for a test.
  const tarn_sequential_verdict *sequential;
  tarn_results_judged_measure sequential_measure;
  // Notes for readers of the table, one line each: values that were held or assumed, runs that failed or are missing,
  // runs with different numbers of threads or versions, missing outputs.
  const char *const *notes;
  size_t note_count;
  struct tarn__results_table_memory *memory;
} tarn_results_table;

// Compares the finished runs. `results` must stay open until the table is closed; options NULL: defaults. Fails with
// - USAGE: no finished run, options out of range, an unknown metric or baseline (the message names the nearest one);
// - DATA, naming two runs: different T-hat, clocks, validation data, or ways of scoring (signature, valid.beam,
//   valid.length_penalty, valid.max_sentences) in one table, or test scores of different tests (source, reference,
//   beam, signature; folder and number of pairs); or one run: it ended by train.max_minutes before T-hat, has no
//   validation, or no validation at time 0 for a score that needs it; test.hyp does not match the scores in test.json;
// - NUMERIC: an area is not a finite number; IO, MEMORY.
TARN_API tarn_status tarn_results_compare(tarn_results_table **table, const tarn_results *results,
                                          const tarn_results_options *options) TARN_CHECKED;
TARN_API void tarn_results_table_close(tarn_results_table **table);

// --- curves

typedef enum tarn_results_axis { TARN_RESULTS_SECONDS, TARN_RESULTS_STEPS } tarn_results_axis;

// A configuration's curve: mean and spread over its finished runs, each interpolated linearly between its points. Over
// seconds, where runs of the results are of several processors, only over runs on one, that of their table.
typedef struct tarn_results_band_point {
  double x;         // seconds or steps
  double mean, sd;  // sample standard deviation, 0 for one run
  double low, high;
  size_t count;  // runs that extend this far, at least 1
} tarn_results_band_point;

// Fills `points` at x = i * limit / (size - 1) for i = 0 .. size - 1, skipping x without a value of any finished run of
// the group, and sets *count. `limit` 0: the last point of the runs. 2 <= size. An unknown name gives no points. Fails
// with USAGE for bad arguments, MEMORY.
TARN_API tarn_status tarn_results_band(tarn_results_band_point *points, size_t *count, size_t size,
                                       const tarn_results *results, size_t group, const char *name,
                                       tarn_results_axis axis, double limit) TARN_CHECKED;

// A report of a comparison, as a page for reading and as files for a paper.
//
//   tarn_results_open(&results, paths, count), tarn_results_compare(&table, results, NULL);
//   tarn_report_options options;
//   tarn_report_default(&options);
//   options.output = "report";
//   status = tarn_report_write(results, table, &options);
//
// Files of the folder:
//   report.html       the whole report, self-contained: no other file, no network and no script; light, dark, and print
//   report.md         summary, tables and figures
//   report.tex        the tables and figures, for \input with the packages booktabs and graphicx
//   results.csv       one line per configuration: every measure as mean, standard deviation and number of runs
//   runs.csv          one line per run, failed ones included
//   figures/NAME.svg  each figure
//   figures/NAME.pdf  the same, by tarn_report_write_pdf()

typedef struct tarn_report_options {
  const char *output;  // folder; created with its parents if missing
  const char *title;   // NULL: the sweep's name, or the number of configurations (default)
} tarn_report_options;

TARN_API void tarn_report_default(tarn_report_options *options);

// Writes all files, each atomically; report.html comes last. Files of the same names are replaced, others in the folder
// are kept. Fails with USAGE (no output), IO or MEMORY.
TARN_API tarn_status tarn_report_write(const tarn_results *results, const tarn_results_table *table,
                                       const tarn_report_options *options) TARN_CHECKED;

// Writes the figures as PDF too, each atomically, for report.tex. Fails with UNSUPPORTED, writing nothing, if the
// library was built without librsvg or librsvg-2.so.2 is not found; else like tarn_report_write(). If librsvg runs out
// of memory, GLib aborts the process.
TARN_API tarn_status tarn_report_write_pdf(const tarn_results *results, const tarn_results_table *table,
                                           const tarn_report_options *options) TARN_CHECKED;

// Confidence and significance of scores: bootstrap intervals, paired bootstrap resampling (Koehn, EMNLP 2004) and
// paired approximate randomization (Noreen 1989; Riezler and Maxwell, 2005), as in sacreBLEU 2. The random number
// generator is not NumPy's, so results equal sacreBLEU's only within sampling error.
//
// These tests cover the sentences of a test set, not other seeds of the training (a comparison does).
//
// A score's statistics (tarn/score.h) are computed once for each system; any number of resamples is then scored from
// their sums.

// With fewer resamples, the 2.5 % cut off at each end of an interval would be less than one.
enum { TARN_SIGNIFICANCE_LEAST = 40, TARN_SIGNIFICANCE_MOST = 1000000 };

typedef struct tarn_significance_options {
  // Test sets drawn from the sentences with replacement; TARN_SIGNIFICANCE_LEAST .. MOST, or 0 for no intervals
  // (default 0).
  int64_t resamples;
  bool paired_bootstrap;  // test each system against the first one on these resamples (default false)
  // Trials of the randomization test, in which system and baseline swap outputs for about half of the sentences; LEAST
  // .. MOST, or 0 for none (default 0). Only one of the two tests may be used.
  int64_t trials;
  // Resample r, or trial r, uses stream r of the seed: the same sentences for all systems (default 12345).
  uint64_t seed;
} tarn_significance_options;

typedef struct tarn_significance {
  double score;
  // Of the resamples' scores, NAN without resamples: their mean, the interval with 95 % of them, and half of its width.
  // sacreBLEU prints mean and half width.
  double mean, low, high, half_width;
  // From the score of the first system; NAN for that system, and without a test.
  double difference;
  // sacreBLEU's p, (count + 1) / (n + 1), so never 0; NAN as above. Randomization counts trials whose scores differ
  // more than on the test set, in either direction. The bootstrap counts resamples whose difference, minus the mean of
  // all, is larger than on the test set (absolute values); this is a one-sided test, whose p is at most half of the
  // other's. An exception: if only k sentences differ, p is at least 2^(1 - k). sacreBLEU gives its smallest p to equal
  // systems, and to systems that differ in one sentence.
  double p;
} tarn_significance;

TARN_API void tarn_significance_default(tarn_significance_options *options);

// Fills out[i] for each of `count` systems; the first is the baseline. All statistics must be of one kind, computed
// with the same options, references and number of sentences, below 2^31. Options NULL: defaults. Fails with USAGE if
// they are not, for bad options, and for a test without a second system; and with MEMORY.
TARN_API tarn_status tarn_significance_compute(tarn_significance *out, const tarn_statistics *const *systems,
                                               size_t count, const tarn_significance_options *options) TARN_CHECKED;

// The signature of a score with the resampling, in sacreBLEU's format: "nrefs:1|bs:1000|seed:12345|case:mixed|...".
// `signature` is that of the score; without resampling it is written unchanged.
TARN_API void tarn_significance_signature(char text[TARN_SIGNATURE_TEXT], const char *signature,
                                          const tarn_significance_options *options);

#ifdef __cplusplus
}
#endif
#endif

// Results of trainings: their comparison, a report of it, and tests of the scores of systems on one test set.
#ifndef TARN_LAB_RESULTS_H
#define TARN_LAB_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/measure.h"
#include "tarn/plan.h"
#include "tarn/score.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Results of trainings: reads run directories, groups them into configurations over seeds, and computes what a
// comparison needs: convergence curves, the area under them (AUCC), times, sizes, test scores and verdicts.
// `tarn compare` prints from it and `tarn report` draws from it; both show what is here and compute nothing themselves.
//
// What is read. A run directory has config.yaml, log.jsonl, and, when its training ended, result.json
// (docs/training.md); test.json holds its scores on a test set, test.hyp its translations, test.pairs its answers to
// minimal pairs. A sweep's folder has sweep.json, and a run directory VARIANT/seed-N for each variant and seed. Nothing
// is written, so runs that still train may be read.
//
// Names of scores. Each number that the log has is a series under the name that TensorBoard shows as well:
// "valid/bleu", "valid/loss", "valid/nll", "valid/ppl" (exp(nll), computed here), "train/loss", "train/nll",
// "train/ppl", "train/lr", "train/grad_norm", "test/bleu" of the scored set "test", "train/tokens_per_second",
// "backskip/cosine/encoder 3 R", ... Where a name is expected, "bleu" means "valid/bleu", and so does "valid_bleu", as
// the lines of the log have it: / and _ are taken for one sign. tarn/measure.h says whether less is better; of anything
// that is not a measure, more is.
//
// Times are seconds of the training clock (train.clock), which does not run during validation and saving. A double that
// is not known is NAN, an integer that is not known is -1, a text that is not known is NULL.
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

// How far a run has come.
typedef enum tarn_results_state {
  TARN_RESULTS_FINISHED,    // result.json says so: a limit was reached
  TARN_RESULTS_FAILED,      // result.json says so: a number was not finite, or the disk was full, ...; see `message`
  TARN_RESULTS_UNFINISHED,  // there is no result.json: it trains, was stopped or was killed
  TARN_RESULTS_PENDING,     // the sweep names it, but it has no directory yet: no config, no series
  TARN_RESULTS_STATES
} tarn_results_state;
// "finished", "failed", "unfinished", "pending"; "?" for another value.
TARN_API const char *tarn_results_state_name(tarn_results_state state);

// One point of a curve.
typedef struct tarn_results_point {
  double seconds;  // training clock
  int64_t step;    // updates
  double epoch;    // passes over the data; NAN where the log does not say it
  double value;    // finite
} tarn_results_point;

// One score over a run, in the order of the log: steps and times never fall. The validation of an averaged checkpoint
// is not a point of a curve; it is in the run's `average_*`.
typedef struct tarn_results_series {
  const char *name;  // "valid/bleu"
  bool less;         // less is better
  const tarn_results_point *points;
  size_t count;  // at least 1
} tarn_results_series;

// A layer as it is drawn. Its place is its index, 0 next to the embeddings.
typedef struct tarn_results_layer {
  const char *kind;    // name in `kinds:`
  const char *set;     // name of its weights: "layer3", "R1"
  const char *mixer;   // word of the mixer: "attention", "none", ...
  bool frozen;         // random for ever: a reservoir
  bool matrices;       // it is a reservoir of frozen matrices, whose norms and biases are trained
  bool partly_frozen;  // trained, but for W_in, W_rec or W_out of its recurrence
  bool shared;         // another layer of the stack has the same weights
  int32_t first;       // the lowest layer with the same weights
  bool empty;          // it has no token mixer: it is its FFN alone
} tarn_results_layer;

typedef struct tarn_results_stack {
  const tarn_results_layer *layers;  // from the bottom to the top
  int32_t count;                     // layers
  int32_t trained, frozen;           // places; their sum is `count`
  const char *pattern;               // "(R L)*4"
} tarn_results_stack;

// A layer that staged or automatic freezing froze in the course of the training.
typedef struct tarn_results_freeze {
  double seconds;
  int64_t step;
  const char *layer;  // as the log names it: "encoder.layer1"
} tarn_results_freeze;

// What a scored set of a run was (sets in the configuration), as hashes: of what the loss counts, and of what BLEU
// does, NULL: it was not computed.
typedef struct tarn_results_set {
  const char *name, *hash, *bleu_hash;
} tarn_results_set;

// One run directory.
typedef struct tarn_results_run {
  const char *path;  // of the directory
  size_t group;      // index into tarn_results.groups
  int64_t seed;
  tarn_results_state state;
  const char *message;        // of a failed run: why, one line
  const char *version;        // of the program that wrote result.json
  const tarn_config *config;  // NULL: the run has none yet
  const char *config_text;    // config.yaml as it is on the disk; NULL: the run has none yet
  const char *metric;         // valid.metric: "bleu", "loss", ...; NULL: the run has none yet

  const tarn_results_series *series;  // sorted by name
  size_t series_count;
  const tarn_results_freeze *freezes;  // in the order of the log
  size_t freeze_count;
  const char *signature;  // of the validation BLEU
  const char
      *config_changed;  // how it is known that config.yaml is not the one that this run was trained with; or NULL
  // log_changed: why log.jsonl is not the one that the training wrote. It lost lines or was edited, so that curves and
  // all that is measured on them are not those of the training. NULL: it is that one, or nothing there says how it was.
  // log_accepted: the same of a log with which the training continued anyway (--accept-log), and at which update;
  // NULL and -1: it never did.
  const char *log_changed, *log_accepted;
  int64_t log_accepted_step;

  // Where the run stands: of result.json, and else of the last line of the log.
  const char *end;  // of a finished run: "updates", "epochs", "minutes", "patience" or "pass"
  double seconds;
  int64_t step;
  double epoch;
  const char *clock;  // "wall" or "cpu"
  int64_t threads;
  int64_t parameters, trained_parameters, frozen_parameters;  // each parameter once; the first is the others' sum
  int64_t shared_parameters;                                  // that sharing saves
  int64_t planned_bytes, peak_bytes;                          // memory of the process
  int64_t best_update;  // of the best validation by valid.metric; -1: there is none
  tarn_cost cost;
  const char *valid_hash;        // of the validation data as the loss counts them
  const char *config_hash;       // of the config.yaml that it was trained by; NULL: not known
  const char *valid_bleu_hash;   // as BLEU does; NULL: there is none, or an earlier program did not say
  const tarn_results_set *sets;  // that were scored
  size_t set_count;

  // Of the test set, from test.json (docs/experiments.md).
  double test_bleu, test_chrf;
  double test[TARN_MEASURES];                        // of a set with labels or of a text, by measure; NAN: not known
  const char *test_set;                              // prefix of that shard, or file of that text; NULL: none
  int64_t test_size;                                 // rows of the shard, or bytes of the text; -1: not known
  int64_t test_window, test_stride;                  // of a text, as in tarn/lab/sweep.h; -1: not known
  double test_blimp;                                 // of a language model: accuracy on minimal pairs, per cent
  const char *test_signature, *test_chrf_signature;  // of the BLEU and of the chrF
  const char *test_checkpoint;                       // name of its file; NULL: not said
  const char *test_source;                           // file that was translated, one sentence a line
  const char *test_reference;                        // file of references, one sentence a line
  const char *test_precision;  // of its arithmetic: "fp32", "bf16", "int8"; NULL: an earlier program's, which is fp32
  const char *test_folder;     // of a language model: folder of minimal pairs
  int64_t test_sentences, test_beam, test_pairs;
  double test_length_penalty;  // NAN: not said
} tarn_results_run;

// A configuration: runs whose configurations differ in the seed only.
typedef struct tarn_results_group {
  const char *name;       // the variant's name in a sweep, else the name of the run directory (above "seed-N"), or its
                          // path where another one has the name, or "NAME (2)" where both are taken; unique
  const char *changes;    // in a sweep: what the variant sets, "key=value key=value"; else NULL
  const char *equalized;  // in a sweep: what `equalize` changed, likewise; NULL: nothing
  const char *grid;       // in a sweep: the point of the variant's grid, "train.lr=0.0001"; NULL: it has no grid
  // Only one point of a grid is a group, under the variant's name in the sweep's file: of those with the fewest failed
  // runs, the one whose finished runs have the best mean of their best valid.metric. This says which point it is and
  // what the others reached.
  const char *chosen;  // NULL: there was no grid
  const size_t *runs;  // indices into tarn_results.runs, in order of seeds
  size_t run_count;
  size_t finished, failed;  // runs in these states
  // Of the first run that has begun (all have the same); counts are 0 and pointers NULL where none has.
  tarn_results_stack encoder, decoder;
  double layer_drop;  // the larger of encoder.layerdrop and decoder.layerdrop; 0: none
} tarn_results_group;

typedef struct tarn_results {
  const tarn_results_run *runs;
  size_t run_count;
  const tarn_results_group *groups;  // in the order of the sweep or of the arguments
  size_t group_count;
  // Of the sweep, where all runs are of one.
  const char *sweep;  // its name
  size_t baseline;    // group that it names as baseline; group_count: none
  double budget;      // seconds: its T-hat
  struct tarn__results_memory *memory;
} tarn_results;

// Reads run directories, sweeps' folders, and folders that hold some of both, at most four levels deep, in the order of
// the arguments and of their names. Fails, in one line that names the file or run, with
// - USAGE: no path, a folder that holds no run, a run that is given twice, two runs of one configuration and seed, a
//   config.yaml that is not valid;
// - DATA: a file is malformed (a last line of the log without its end, as a kill leaves it, is left out), a number is
//   out of range, times or steps fall, a run directory was written by a later version of the program;
// - IO: a path cannot be read, or is no folder; MEMORY.
TARN_API tarn_status tarn_results_open(tarn_results **results, const char *const *paths, size_t count) TARN_CHECKED;
TARN_API void tarn_results_close(tarn_results **results);

// The series of that name, or, where there is none, of "valid/" and that name, or of that name in the other spelling.
// NULL if there is none.
TARN_API const tarn_results_series *tarn_results_find(const tarn_results_run *run, const char *name);
// Fails with USAGE where no run has a series that tarn_results_find() finds by that name; the line suggests the nearest
// name that one has.
TARN_API tarn_status tarn_results_check_name(const tarn_results *results, const char *name) TARN_CHECKED;

// --- comparison

typedef struct tarn_results_options {
  const char *metric;  // the score; NULL (default): valid/bleu if all finished runs have it, else the valid.metric of
                       // all if it is the same, else valid/loss
  double budget;  // T-hat in seconds; 0: the sweep's, else train.max_minutes where all runs have the same, else, where
                  // no run has it, the time of the longest (default)
  const char *baseline;  // name of a group; NULL: the sweep's, else the first group (default)
  int64_t resamples;     // of the bootstrap, 40 .. 1,000,000; or 0: no verdicts on tests (default 1000)
  uint64_t seed;         // of the bootstrap (default 12345, as sacreBLEU)
} tarn_results_options;
TARN_API void tarn_results_default(tarn_results_options *options);

// What is measured of a finished run; all NAN and -1 for the others.
typedef struct tarn_results_measures {
  // The integral of the curve g from 0 to T-hat, in units of the score times minutes, by the trapezoid rule; and the
  // same divided by T-hat in minutes, which reads as an average score. g is the score, or its negative where less is
  // better, so that more AUCC is always better. The curve is cut at T-hat by linear interpolation. A run that reached
  // another limit before T-hat keeps its last value until T-hat (`held`). The first point is at time 0: the validation
  // there (valid.at_start); without it BLEU is taken to start at 0 (`assumed_start`), other validation scores are
  // refused, and scores of training, which are means over the updates before a line, keep their first value
  // (`assumed_start`).
  double aucc, aucc_mean;
  bool held;           // the last value was kept for more than 1 % of T-hat
  bool assumed_start;  // the value at time 0 is not in the log

  // Best value of the score among the validations up to T-hat, and when it was reached first. Where T-hat is the run's
  // own limit, the validation at its end counts, although its last update ended a little after T-hat. best_seconds is
  // NAN where no validation is better than the first one, at time 0 or later: no time to best was observed.
  double best, best_seconds, best_epoch;
  int64_t best_step;
  // Least valid/loss of the same validations, and when; min_loss_seconds is NAN where none is less than the first
  // one's.
  double min_loss, min_loss_seconds;
  int64_t min_loss_step;
  double epoch_seconds;              // training time of one pass over the data, mean of the whole run
  double budget_step, budget_epoch;  // where the run was at T-hat, by linear interpolation; or at its end, if earlier
  double test_bleu, test_chrf, test_blimp;  // as in the run
  double test_score;                        // the run's `test` of the table's test_measure
  double peak_bytes;                        // as in the run

  // Energy and operations, as in the run. Those until the best validation are of the one that `best` is of: NAN where
  // the table's score or T-hat makes another one the best than valid.metric did.
  double joules, epoch_joules, best_joules, co2_grams;
  double token_operations, operations, best_operations, moved_bytes;

  // Training loss, with dropout and label smoothing, up to T-hat: the least value of a line of the log, which is the
  // mean over the updates before it (train.log_every); when it was reached (NAN where no line has less than the
  // first); and the mean over the last epoch of training (or over all of it, where that is less than one), each line
  // weighted by its share of the epoch.
  double min_train_loss, min_train_loss_seconds, epoch_train_loss;
  int64_t min_train_loss_step;
} tarn_results_measures;

// Mean and sample standard deviation (n - 1) of `count` runs; NAN for no run, and the deviation for one run.
typedef struct tarn_results_statistic {
  double mean, sd;
  size_t count;
} tarn_results_statistic;

// --- verdicts
//
// Whether two configurations differ is said in one place, by a tarn_results_verdict; whatever prints a comparison
// prints from it. What is measured is the difference of the means over all runs of either configuration.
//
// Chance has two sources: other seeds would have given other models, and other sentences (or minimal pairs) another
// test. Both are counted, as where several readers read the same cases under several methods (Obuchowski and Rockette,
// "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests", Communications in Statistics
// 1995), seeds being readers, nested in their configuration, and sentences cases, the same for all:
//
//   variance = s_a^2 / n_a + s_b^2 / n_b + max(0, v - w_a - w_b)
//
// - s^2 is the sample variance of a configuration's scores over its n seeds;
// - v is the variance of the difference of the means over bootstrap resamples of the test's items, in which every run
//   is scored on the same items (minimal pairs are drawn within their paradigm);
// - w is the part of v that is each run's own, sum over runs of the variance over resamples of (score - mean score of
//   the configuration) / (n (n - 1)): s^2 has it already.
//
// Drawing the few seeds with replacement, as one draws sentences, would count their variance (n - 1) / n times and take
// normal quantiles for it: with three seeds the 95 % intervals of such a percentile bootstrap hold the truth in 80 % of
// experiments where seeds are most of the chance, and those of sentences alone in nearly none. So the seeds' part is
// computed, and the interval is difference +- t * sqrt(variance), where t is Student's with Satterthwaite's degrees of
// freedom (Biometrics Bulletin 1946; Welch, Biometrika 1947; Hillis, Statistics in Medicine 2007, for this variance):
// each s^2 / n has n - 1, the items' part their number less 1. tests/unit/test_verdict.c simulates how often it holds
// the truth: with 3 to 10 seeds in 93 to 97 %, whatever shares seeds and items have in the variance, as long as the
// standard deviation over seeds of one configuration is not more than 3 times that of the other (96.5 %, the most, with
// three seeds and no chance of items). Beyond that it may be less with 3 seeds on the more spread side, down to 92 %
// where the other one does not depend on its seed at all. All of this is for normal distributions, which a training
// that breaks now and then does not have.
//
// Seeds are not paired: the same seed gives two models the same order of the data but different first weights, and the
// effects on their scores have next to nothing in common. Where they had, the difference would be surer than is said,
// not less sure. Scores without a test of items (of the log: best, areas, times, losses) have the seeds' part alone,
// which is Welch's test; it speaks of other seeds on the same validation data.
//
// With one seed each, only items are resampled, and the verdict is one on these two models, not on their configurations
// (scores of the log get none). With two seeds the interval is given, which is wide, but no verdict. With three or more
// on both sides there is a verdict.

// What a verdict rests on, or why there is none.
typedef enum tarn_results_basis {
  TARN_RESULTS_CONFIGURATIONS,  // three or more seeds on both sides
  TARN_RESULTS_MODELS,          // one seed each, resampled items: a verdict on these two models
  TARN_RESULTS_ONE_SEED,        // none: one seed on one side, or on both and no items
  TARN_RESULTS_TWO_SEEDS,       // none: two seeds on one side
  TARN_RESULTS_NO_ITEMS,        // none: a test score, and outputs of a run that has it are missing
  TARN_RESULTS_NO_RESAMPLES,    // none: a test score, and options.resamples is 0
  TARN_RESULTS_OTHER_LOSSES,    // none: losses of other label smoothing, or of other validation data
  TARN_RESULTS_OTHER_SOURCES,   // none: energies that were measured by different sources
  TARN_RESULTS_NO_SPREAD,       // none: runs of different seeds have equal scores, so nothing is known of chance
  TARN_RESULTS_NO_SCORES,       // none: no finished run on one side has the score
  TARN_RESULTS_BASES
} tarn_results_basis;

typedef enum tarn_results_decision {
  TARN_RESULTS_NONE,       // no verdict: see the basis
  TARN_RESULTS_UNDECIDED,  // p > 0.05
  TARN_RESULTS_BETTER,     // p <= 0.05, and better
  TARN_RESULTS_WORSE
} tarn_results_decision;

// Of one configuration against another. NAN where the basis gives no such number.
typedef struct tarn_results_verdict {
  tarn_results_decision decision;
  tarn_results_basis basis;
  bool less;                // less is better
  size_t runs, other_runs;  // of the configuration and of the other one
  double difference;        // mean minus the other one's mean
  double low, high;         // 95 % interval, of this comparison by itself
  double error, freedom;    // standard error, degrees of freedom
  double p;                 // two-sided, corrected for all comparisons (Holm 1979)
  double p_single;          // the same before the correction
  size_t comparisons;       // how many p were corrected together: those of one measure against the baseline
  const int64_t *seeds;     // (seed_count) that both have
  const double *by_seed;    // (seed_count) differences of these seeds' runs
  size_t seed_count;
  const char *words;  // "better", "undecided", "better, of these two models", "no verdict (two seeds)"
} tarn_results_verdict;

// "< 0.001", "0.036", or "" for NAN: how every p is printed.
enum { TARN_RESULTS_P_TEXT = 16 };
TARN_API void tarn_results_p(char text[TARN_RESULTS_P_TEXT], double p);

// What is judged: scores, of tests and of the log, then measures of training.
typedef enum tarn_results_judged_measure {
  TARN_RESULTS_JUDGED_TEST_BLEU,
  TARN_RESULTS_JUDGED_TEST_CHRF,
  TARN_RESULTS_JUDGED_TEST_BLIMP,
  TARN_RESULTS_JUDGED_TEST_SCORE,  // of test_measure, by the seeds alone: rows of the test are not resampled
  TARN_RESULTS_JUDGED_BEST,
  TARN_RESULTS_JUDGED_AUCC,  // divided by T-hat
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

// The verdicts on one measure: of every row against the baseline, corrected together, and the row that leads.
typedef struct tarn_results_judged {
  const char *key;                       // "test_bleu"
  bool less;                             // less is better
  size_t rows;                           // that have the score
  size_t comparisons;                    // verdicts with a p
  const tarn_results_verdict *verdicts;  // (row_count); that of the baseline has no part
  // The row that is decided to be better than each other row that has the score, every p multiplied by the number of
  // the others; row_count: none. Tables mark this row and no other.
  size_t leader;
} tarn_results_judged;

// A configuration in the comparison. Statistics are over finished runs only.
typedef struct tarn_results_row {
  size_t group;   // index into tarn_results.groups; rows have the groups' order
  bool baseline;  // it is the baseline itself
  tarn_results_statistic aucc, aucc_mean, best, best_seconds, min_loss, min_loss_seconds, epoch_seconds, budget_step,
      budget_epoch, test_bleu, test_chrf, test_blimp, test_score, peak_bytes, min_train_loss, min_train_loss_seconds,
      epoch_train_loss, joules, epoch_joules, best_joules, co2_grams, token_operations, operations, best_operations,
      moved_bytes;
  size_t held, assumed_start;  // finished runs with these marks
  // The regular configuration (no layer frozen or shared, no LayerDrop) with as many updatable layers in the encoder
  // and in the decoder, and the one with as many layers in all: the baseline if it is one, else the first such group
  // with a time to best; group_count: there is none. The ratios are mean time to best over that group's mean time to
  // best; NAN where the row has none.
  size_t regular, regular_deep;
  double time_ratio, time_ratio_deep;
} tarn_results_row;

typedef struct tarn_results_table {
  const char *metric;  // full name: "valid/bleu"
  bool less;           // less is better
  double budget;       // T-hat in seconds
  const char *clock;   // of all runs
  int64_t resamples;   // of the bootstrap
  size_t baseline;     // index into rows
  // By which measure tests with labels and of texts are compared: the table's metric where the tests have it, else the
  // first that all have of accuracy, Pearson's correlation, bits per character, bits per byte and perplexity; NULL:
  // there is no such test.
  const tarn_measure *test_measure;
  const tarn_results_row *rows;
  size_t row_count;
  const tarn_results_measures *measures;  // (results->run_count)
  tarn_results_judged judged[TARN_RESULTS_JUDGED_MEASURES];
  // What a reader of the table must know, one line each: values that were held or assumed, runs that failed or are
  // missing, runs of different numbers of threads or versions, outputs that are missing.
  const char *const *notes;
  size_t note_count;
  struct tarn__results_table_memory *memory;
} tarn_results_table;

// Compares the finished runs. `results` must stay open until the table is closed; options NULL: defaults. Fails with
// - USAGE: no finished run, options out of range, an unknown metric or baseline (the nearest one is named);
// - DATA, naming two runs: different T-hat, clocks, validation data, or ways of scoring (signature, valid.beam,
//   valid.length_penalty, valid.max_sentences) in one table, or test scores of different tests (source, reference,
//   beam, signature; folder and number of pairs); or one run: it ended by train.max_minutes before T-hat,
//   has no validation, or no validation at time 0 for a score that needs it; test.hyp that is not what test.json
//   scored;
// - NUMERIC: an area is not a finite number; IO, MEMORY.
TARN_API tarn_status tarn_results_compare(tarn_results_table **table, const tarn_results *results,
                                          const tarn_results_options *options) TARN_CHECKED;
TARN_API void tarn_results_table_close(tarn_results_table **table);

// --- curves

typedef enum tarn_results_axis { TARN_RESULTS_SECONDS, TARN_RESULTS_STEPS } tarn_results_axis;

// A configuration's curve: mean and spread of its finished runs, each interpolated linearly between its points.
typedef struct tarn_results_band_point {
  double x;         // seconds or steps
  double mean, sd;  // sample standard deviation, 0 for one run
  double low, high;
  size_t count;  // runs that reach so far, at least 1
} tarn_results_band_point;

// Fills `points` at x = i * limit / (size - 1) for i = 0 .. size - 1, leaving out x at which no finished run of the
// group has a value, and sets *count. `limit` 0: the farthest point of the runs. 2 <= size. A name that no run has
// gives no points. Fails with USAGE on bad arguments, MEMORY.
TARN_API tarn_status tarn_results_band(tarn_results_band_point *points, size_t *count, size_t size,
                                       const tarn_results *results, size_t group, const char *name,
                                       tarn_results_axis axis, double limit) TARN_CHECKED;

// A report of a comparison: what was read and computed, as a page to look at and as files for a
// paper.
//
//   tarn_results_open(&results, paths, count), tarn_results_compare(&table, results, NULL);
//   tarn_report_options options;
//   tarn_report_default(&options);
//   options.output = "report";
//   status = tarn_report_write(results, table, &options);
//
// Files of the folder:
//   report.html       the whole report; needs no other file, no network and no script; light, dark, and for print
//   report.md         summary, tables and figures
//   report.tex        the tables and figures, for \input with the packages booktabs and graphicx
//   results.csv       one line a configuration: every measure as mean, standard deviation and number of runs
//   runs.csv          one line a run, failed ones included
//   figures/NAME.svg  each figure
//   figures/NAME.pdf  the same, by tarn_report_write_pdf()

typedef struct tarn_report_options {
  const char *output;  // folder; made with those above it where it does not exist
  const char *title;   // NULL: the sweep's name, or the number of configurations (default)
} tarn_report_options;

TARN_API void tarn_report_default(tarn_report_options *options);

// Writes all files, each atomically; report.html comes last. Files of an earlier report with the same names are
// replaced, others in the folder stay. Fails with USAGE (no output), IO or MEMORY.
TARN_API tarn_status tarn_report_write(const tarn_results *results, const tarn_results_table *table,
                                       const tarn_report_options *options) TARN_CHECKED;

// Writes the figures as PDF too, each atomically, for report.tex. Fails with UNSUPPORTED, writing nothing, if the
// library was built without librsvg or librsvg-2.so.2 cannot be found; else like tarn_report_write(). If librsvg runs
// out of memory, GLib ends the process.
TARN_API tarn_status tarn_report_write_pdf(const tarn_results *results, const tarn_results_table *table,
                                           const tarn_report_options *options) TARN_CHECKED;

// How sure a score is, and whether one system is better than another: bootstrap intervals, paired bootstrap resampling
// (Koehn, EMNLP 2004) and paired approximate randomization (Noreen 1989; Riezler and Maxwell, 2005), as sacreBLEU 2 has
// them. Random numbers are not NumPy's, so results equal sacreBLEU's within sampling error only.
//
// All of it is about the sentences of a test set. It does not say what another seed of the training would have given
// (a comparison does).
//
// A score's statistics (tarn/score.h) are counted once for each system; then any number of resamples is scored from
// their sums.

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

// Sweeps of many trainings as processes, and the score of a run on a test set.
#ifndef TARN_LAB_SWEEP_H
#define TARN_LAB_SWEEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/checkpoint.h"
#include "tarn/classify.h"
#include "tarn/config.h"
#include "tarn/lab/sequential.h"
#include "tarn/lm.h"
#include "tarn/plan.h"
#include "tarn/score.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// The score of a run on a test set: translates it with the run's checkpoint and compares with the references; for a
// language model scores minimal pairs or a text; for a classifier compares predictions with the labels.
//
// The run directory gets test.hyp, one detokenized translation per line, and test.json:
//   {"bleu", "signature", "chrf", "chrf_signature", "seconds", "checkpoint", "sentences", "beam", "length_penalty",
//    "precision", "source", "reference"}, and for a model that translates without a beam, which is then 0,
//   "iterations" and "length_beam"
// Both are replaced atomically, test.hyp first, so test.json always describes a complete test.hyp. For a language model
// it gets test.pairs, one line per paradigm (its name, a space and one digit per pair, 1 for right), and test.json with
// accuracies in percent:
//   {"blimp", "low", "high", "pairs", "fields": {NAME: accuracy}, "paradigms": {NAME: accuracy}, "unknown",
//    "truncated", "replaced", "equal", "seconds", "checkpoint", "precision", "folder"}
// For a classifier it gets test.json with its measures and their 95 % intervals:
//   {MEASURE: {"value", "low", "high"}, ..., "loss", "rows", "left_out", "seconds", "checkpoint", "precision", "data"}
// For a text and a language model it gets test.json with nats per token, perplexity, bits per character and per byte:
//   {"nll", "ppl", "bpc", "bpb", "lines", "tokens", "characters", "bytes", "unknown", "seconds", "checkpoint",
//    "precision", "text", "window", "stride"}
// A failed test in a sweep leaves {"status": "failed", "message", ...} as test.json.

typedef struct tarn_testset_options {
  const char *run;                     // run directory
  const char *checkpoint;              // file; NULL (default): the one of the run chosen by tarn_checkpoint_find()
  const char *source;                  // raw text, one sentence per line
  const char *reference;               // raw text, one translation per line
  const char *blimp;                   // language models, instead of both: folder of minimal pairs (tarn/lm.h)
  const char *labelled;                // classifiers, instead of the above: prefix of a labelled shard (tarn/data.h)
  const char *text;                    // language models, instead of the above: a text file (tarn/lm.h)
  int64_t window, stride;              // of the text, in tokens: windows of `window` (0, the default: model.max_length)
                                       // that advance by `stride`, 1 .. window; 0 (default): line by line
  int64_t beam;                        // translation; 0 (default): translate.beam of the run. Else 0
  tarn_translate_precision precision;  // of the test's arithmetic, not of the training; not auto; default fp32
  tarn_translate_overlong
      overlong;       // for the sentences of blimp and the lines of text; default: refuse. Sources are always truncated
  int threads;        // 0: all available to the process (default)
  tarn_ranks *ranks;  // share the work (tarn/process.h): rank 0 has the result and writes the files; owned by the
                      // caller. Default NULL: a single process
} tarn_testset_options;

typedef struct tarn_testset_result {
  double bleu, chrf;  // 0 .. 100; BLEU with valid.lowercase and valid.tokenize of the run, chrF2 with the same case
  char bleu_signature[TARN_SIGNATURE_TEXT], chrf_signature[TARN_SIGNATURE_TEXT];
  int64_t sentences, beam;
  double blimp, blimp_low, blimp_high;  // 0 .. 100; mean over paradigms, and its 95 % interval
  int64_t pairs;
  int64_t unknown, truncated, replaced, equal;  // of the pairs, as in tarn_minimal_pairs_result
  tarn_classify_test labels;                    // of a classifier
  tarn_lm_total text;                           // of a text
  double seconds;                               // of translation, or of scoring the pairs or rows
  int64_t iterations, length_beam;              // of a model without a beam (docs/non-autoregressive.md); else 0; a
                                                // Levenshtein Transformer has no length_beam
} tarn_testset_result;

TARN_API void tarn_testset_default(tarn_testset_options *options);

// Fails with USAGE (options, a test unsuitable for the model), IO, DATA (files with different numbers of lines, a
// damaged checkpoint, a file without pairs, a text without tokens), NUMERIC (a result is not finite), MEMORY.
TARN_API tarn_status tarn_testset_run(tarn_testset_result *result, const tarn_testset_options *options) TARN_CHECKED;

// Sweeps: trainings of several variants of one configuration with several seeds, compared under equal conditions.
// docs/experiments.md describes the file and the folder.
//
//   tarn_sweep *sweep;
//   tarn_sweep_options options;
//   tarn_sweep_default(&options);
//   options.file = "sweep.yaml", options.folder = "runs/sweep";
//   status = tarn_sweep_open(&sweep, &options);      // reads and checks all; writes nothing
//   if (status == TARN_STATUS_OK) status = tarn_sweep_run_all(sweep, &options);
//   ... sweep->runs[i].state ...
//   tarn_sweep_close(&sweep);

enum { TARN_SWEEP_NAME = 64 };  // bytes of a variant's name with its zero byte

// The property of the base configuration (with the sweep's `set`) that a variant is adjusted to match.
typedef enum tarn_sweep_equalize {
  TARN_SWEEP_EQUALIZE_NO,
  TARN_SWEEP_EQUALIZE_PARAMETERS,  // "parameters": trained and frozen together, each set of weights once
  TARN_SWEEP_EQUALIZE_TRAINED,     // "trained": trained parameters
  TARN_SWEEP_EQUALIZE_FLOPS,       // "flops": floating-point operations per token, forward and backward
  TARN_SWEEP_EQUALIZE_COUNT
} tarn_sweep_equalize;
// "no" and the words above; NULL for another value.
TARN_API const char *tarn_sweep_equalize_name(tarn_sweep_equalize equalize);

// What of the variant is adjusted.
typedef enum tarn_sweep_trade {
  TARN_SWEEP_TRADE_FFN,     // "ffn": the widths of the FFNs
  TARN_SWEEP_TRADE_LAYERS,  // "layers": how often the patterns of the stacks are repeated
  TARN_SWEEP_TRADE_HEADS,   // "heads": the heads of the token mixers
  TARN_SWEEP_TRADE_COUNT
} tarn_sweep_trade;
// The words above; NULL for another value.
TARN_API const char *tarn_sweep_trade_name(tarn_sweep_trade trade);

typedef struct tarn_sweep_variant {
  const char *name;            // letters, digits, _ - + and inner dots; the name of its folder
  const char *const *changes;  // (change_count) its settings: "kinds.R.ffn=512"
  size_t change_count;
  const char *grid;    // the variant in the file that this is a grid point of, "full" for "full+lr-0.0001"; NULL: none
  size_t point_count;  // number of `changes`, at the end, that are the point's values; 0 without a grid
  const tarn_config *config;  // resolved, with the first seed
  tarn_plan plan;             // for it, without parts
  tarn_sweep_equalize equalize;
  tarn_sweep_trade trade;
  const char *const *adjusted;  // (adjusted_count) set by equalizing: "kinds.R.ffn=608", "encoder.layers=L*5"
  size_t adjusted_count;
  const char *bound;             // why it comes no nearer than more than 1 %, which was also logged as a warning; NULL:
                                 // it is within 1 %
  double measure, base_measure;  // parameters or operations of the variant and of the base; 0 without equalize
  double epoch_seconds;          // of training, by tarn_sweep_estimate(); 0: unknown
  double run_seconds;            // of training, by tarn_sweep_estimate(): the budget, else until max_updates or
                                 // max_epochs; 0: unknown
} tarn_sweep_variant;

typedef enum tarn_sweep_state {
  TARN_SWEEP_WAITING,   // not started
  TARN_SWEEP_BEGUN,     // stopped; continues from its last checkpoint
  TARN_SWEEP_TRAINED,   // training is finished, the test is not
  TARN_SWEEP_FINISHED,  // training and test are finished
  TARN_SWEEP_FAILED     // see `message`; repeated only with retry_failed
} tarn_sweep_state;
// "waiting", "begun", "trained", "finished" or "failed"; NULL for another value.
TARN_API const char *tarn_sweep_state_name(tarn_sweep_state state);

typedef struct tarn_sweep_run {
  size_t variant;  // index
  int64_t seed;
  const char *path;   // run directory; NULL for a sweep without a folder
  const char *reuse;  // finished run of another sweep to copy instead of training; NULL: none
  tarn_sweep_state state;
  const char *message;  // of a failed run; else NULL
  int64_t update;       // updates so far
  double seconds;       // training time so far
  double loss;          // from the last line of the log; NAN: unknown
  // Validation scores, by measure (tarn/measure.h), of the checkpoint to be tested (test_checkpoint); during training
  // the best so far with AUTO, BEST and AVERAGE, the newest with LAST; NAN: unknown.
  double valid[TARN_MEASURES];
  double test_bleu, test_blimp;  // NAN: unknown
  double test[TARN_MEASURES];    // scores of test_labelled or test_text by measure; NAN: unknown
  double idle;                   // seconds since the last growth of its log, by the clocks of the folder and of this
                                 // machine; NAN: unknown, or tarn_sweep_look() was not called yet
  // The latest job of this run in a batch system, as "123_4", and the job's state in the system's words ("PENDING",
  // "RUNNING", "TIMEOUT", ...), with the reason if it is pending. NULL: none, or no longer known.
  const char *job, *job_state;
} tarn_sweep_run;

typedef struct tarn_sweep {
  const char *name;    // key `name`, else the file's name without .yaml
  const char *folder;  // of the runs
  const tarn_sweep_variant *variants;
  size_t variant_count;
  // Index; for a variant with a grid, its first point. tarn/lab/results.h compares with the best point in validation.
  size_t baseline;
  // The seeds of the file (first_seeds), then, with a sequential design, up to its max_seeds those that follow the
  // largest.
  const int64_t *seeds;
  size_t seed_count, first_seeds;
  tarn_sequential_design sequential;  // max_seeds 0: none
  // In running order: all variants with the first seed, then the second, ... Of the seeds beyond the file's only runs
  // that were begun, or asked for by `only`.
  const tarn_sweep_run *runs;
  size_t run_count;
  int64_t parallel;       // concurrent runs
  int64_t threads;        // per run
  double budget_seconds;  // training time of every run; 0: none, the configurations have their own limits
  const char *test_source, *test_reference;  // NULL: no translation test
  const char *test_blimp;                    // folder of minimal pairs for language models; NULL: none
  const char *test_labelled;                 // prefix of a shard with labels, for classifiers; NULL: none
  const char *test_text;                     // text for language models; NULL: none
  int64_t test_window, test_stride;          // of test_text: tokens of a window (0: model.max_length) that advances by
                                             // test_stride tokens; stride 0: the text is scored line by line
  int64_t test_beam;                         // 0: translate.beam
  tarn_translate_precision test_precision;   // default fp32
  tarn_checkpoint_choice test_checkpoint;    // the one to test; default AUTO
  int rank;  // of this process among those that share the sweep with launcher MPI; rank 0 reports; set by
             // tarn_sweep_run_all()
  struct tarn__sweep_memory *memory;
} tarn_sweep;

// The launcher of the runs.
typedef enum tarn_sweep_launcher {
  TARN_SWEEP_LAUNCHER_LOCAL,  // "local": processes on this machine, `parallel` at a time
  TARN_SWEEP_LAUNCHER_SLURM,  // "slurm": Slurm array jobs, one task per run
  TARN_SWEEP_LAUNCHER_MPI,    // "mpi": the processes that mpirun or srun started together; each takes the next free run
  TARN_SWEEP_LAUNCHER_COUNT
} tarn_sweep_launcher;
// The words above; NULL for another value.
TARN_API const char *tarn_sweep_launcher_name(tarn_sweep_launcher launcher);

typedef enum tarn_sweep_event_kind {
  TARN_SWEEP_EVENT_SKIPPED,   // it had finished or failed earlier
  TARN_SWEEP_EVENT_STARTED,   // training starts or continues
  TARN_SWEEP_EVENT_PROGRESS,  // its log has grown
  TARN_SWEEP_EVENT_TRAINED,   // training is finished; the test is next
  TARN_SWEEP_EVENT_FINISHED,
  TARN_SWEEP_EVENT_FAILED,
  TARN_SWEEP_EVENT_STOPPED,    // stopped on request, with its state saved
  TARN_SWEEP_EVENT_REUSED,     // copied from another sweep
  TARN_SWEEP_EVENT_SUBMITTED,  // a job was submitted for it
  TARN_SWEEP_EVENT_LOST        // its job ended before the run was over: see job_state
} tarn_sweep_event_kind;

typedef struct tarn_sweep_event {
  tarn_sweep_event_kind kind;
  const tarn_sweep_run *run;
  size_t done, failed, running, count;  // numbers of runs
  double seconds_left;                  // of the sweep, estimated; negative: unknown
} tarn_sweep_event;

typedef struct tarn_sweep_options {
  const char *file;          // sweep file; NULL: the copy kept in the folder
  const char *folder;        // of the runs; created if missing. NULL: only for inspection with tarn_sweep_open()
  const char *program;       // with the commands `train`, `test` and `sweep`; NULL: this program (default)
  const char *const *reuse;  // (reuse_count) folders of other sweeps: waiting runs that are finished there, with the
                             // same settings, seed, training data, test and version of the program, are copied,
                             // not trained. Files other than data.train are compared by their paths
  size_t reuse_count;
  bool retry_failed;  // retry failed runs: a training resumes from its last checkpoint (default no)
  void (*on_event)(void *user, const tarn_sweep_event *event);  // from tarn_sweep_run_all(); NULL: never
  void *user;
  const volatile sig_atomic_t *save;  // when it changes, running trainings save their state and continue. NULL: never
  const volatile sig_atomic_t *stop;  // not 0: stop all runs, save their states, and return INTERRUPTED. NULL: never
  tarn_sweep_launcher launcher;       // default LOCAL
  const char *only;                   // "VARIANT/seed-N": only that run; with SLURM, as in its job. NULL: all
  // For SLURM only; NULL or 0: the defaults of Slurm or of the site.
  const char *partition, *account, *time;  // as for sbatch
  // (sbatch_count) Further sbatch options, which override those of the sweep. Options needed to find the jobs are
  // refused: --job-name, --array, --clusters, --wrap.
  const char *const *sbatch;
  size_t sbatch_count;
  int64_t most_jobs;  // concurrent tasks of one array; 0: all
  double interval;    // polling interval for jobs and runs in seconds; 0: 10
  bool detach;        // return once the jobs are submitted, without following them
} tarn_sweep_options;

TARN_API void tarn_sweep_default(tarn_sweep_options *options);

// The seconds of a time with its unit, "90 s", "10 min" or "1.5 h", above 0. False: it is none.
TARN_API bool tarn_sweep_time_parse(double *seconds, const char *text);

// Reads the file, resolves, equalizes, plans and checks all variants with their data and test set, and reads the state
// of the runs in the folder. Fails with IO or DATA for data that cannot be read, and with USAGE: an unknown key,
// identical variants, a duplicate seed, runs in the folder with other settings, ...; the message names file, line and
// key. Writes nothing. Warnings go to the log (tarn/process.h).
TARN_API tarn_status tarn_sweep_open(tarn_sweep **sweep, const tarn_sweep_options *options) TARN_CHECKED;

// Estimates training times and stores them in the variants: their operations (tarn/plan.h) at 0.8 of the current speed
// of a matrix product with the model's d_model, precision and threads. Takes about a tenth of a second per variant.
// Recurrences, which are sequential, take longer than estimated.
TARN_API tarn_status tarn_sweep_estimate(tarn_sweep *sweep) TARN_CHECKED;

// Seconds until the remaining trainings are finished, `parallel` at a time, if each takes `run_seconds` in total, or
// with 0 the estimate stored in its variant. Copied runs take no time. The result is at least the longest training,
// whatever the number of processes. Negative: unknown for some variant.
TARN_API double tarn_sweep_training_left(const tarn_sweep *sweep, double run_seconds);

// Runs everything that is left. A failed run does not end the sweep; see `runs`. Fails with BUSY (another sweep works
// in the folder), INTERRUPTED, IO.
// LOCAL and MPI: each training is a separate process that dies with the calling thread, so it never outlives the sweep.
// SLURM: submits the runs without a job and follows the jobs until all runs are over. `stop` ends this call but no job;
// the next call attaches to the jobs. Runs that are not over when their job ends are submitted again, unless the job
// was cancelled; after three jobs in a row without progress the run fails. Also fails with UNSUPPORTED (no sbatch), and
// with IO and the message of sbatch or squeue.
TARN_API tarn_status tarn_sweep_run_all(tarn_sweep *sweep, const tarn_sweep_options *options) TARN_CHECKED;

// Updates the progress of all runs, and the states of their jobs if the folder has any; writes nothing. If the batch
// system does not answer, `job` and `job_state` are NULL, and the first time a warning is logged.
TARN_API tarn_status tarn_sweep_look(tarn_sweep *sweep) TARN_CHECKED;

// Cancels the pending and running jobs of the sweep in Slurm; running ones save their state. `job` and `job_state` of
// the runs identify them; *count is their number. A tarn_sweep_run_all() that follows the jobs ends too. Fails with
// UNSUPPORTED if the programs of Slurm are missing, and with IO if Slurm refuses.
TARN_API tarn_status tarn_sweep_cancel(tarn_sweep *sweep, size_t *count) TARN_CHECKED;

TARN_API void tarn_sweep_close(tarn_sweep **sweep);

#ifdef __cplusplus
}
#endif
#endif

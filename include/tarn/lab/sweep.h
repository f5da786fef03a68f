// Many trainings as processes, and the score of a run on a test set.
#ifndef TARN_LAB_SWEEP_H
#define TARN_LAB_SWEEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/checkpoint.h"
#include "tarn/classify.h"
#include "tarn/config.h"
#include "tarn/lm.h"
#include "tarn/plan.h"
#include "tarn/score.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// The score of a run on a test set: translates it with the run's checkpoint and compares with the references; of a
// language model scores minimal pairs or a text; of a classifier compares its answers with the labels.
//
// Beside the run's other files it leaves test.hyp, one detokenized translation a line, and test.json:
//   {"bleu", "signature", "chrf", "chrf_signature", "seconds", "checkpoint", "sentences", "beam", "length_penalty",
//    "precision", "source", "reference"}
// Both are replaced atomically, test.hyp first, so test.json always describes a whole test.hyp. Of a language model
// it leaves test.pairs, one line a paradigm (its name, a space and one digit a pair, 1 for a right one), and test.json
// with accuracies per cent:
//   {"blimp", "low", "high", "pairs", "fields": {NAME: accuracy}, "paradigms": {NAME: accuracy}, "unknown",
//    "truncated", "replaced", "equal", "seconds", "checkpoint", "precision", "folder"}
// Of a classifier it leaves test.json with its measures and their 95 % intervals:
//   {MEASURE: {"value", "low", "high"}, ..., "loss", "rows", "left_out", "seconds", "checkpoint", "precision", "data"}
// Of a text and a language model it leaves test.json with nats a token, perplexity, bits a character and a byte:
//   {"nll", "ppl", "bpc", "bpb", "lines", "tokens", "characters", "bytes", "unknown", "seconds", "checkpoint",
//    "precision", "text", "window", "stride"}
// Of a test that failed a sweep leaves {"status": "failed", "message", ...} in place of test.json.

typedef struct tarn_testset_options {
  const char *run;                     // run directory
  const char *checkpoint;              // file; NULL (default): the one that tarn_checkpoint_find() takes of the run
  const char *source;                  // raw text, one sentence a line
  const char *reference;               // raw text, one translation a line
  const char *blimp;                   // of a language model, in place of both: folder of minimal pairs (tarn/lm.h)
  const char *labelled;                // of a classifier, in place of all: prefix of a shard with labels (tarn/data.h)
  const char *text;                    // of a language model, in place of all: a text file (tarn/lm.h)
  int64_t window, stride;              // of the text, in tokens: windows of `window` (0, the default: model.max_length)
                                       // that advance by `stride`, 1 .. window; 0 (default): line by line
  int64_t beam;                        // of translation; 0 (default): translate.beam of the run. Else 0
  tarn_translate_precision precision;  // of the arithmetic, not of the training; not auto; default fp32
  tarn_translate_overlong
      overlong;       // of the sentences of blimp and the lines of text; default: refuse. Sources are always truncated
  int threads;        // 0: all that the process may use (default)
  tarn_ranks *ranks;  // share the work (tarn/process.h): rank 0 has the result and writes the files; the caller's.
                      // Default NULL: this process is alone
} tarn_testset_options;

typedef struct tarn_testset_result {
  double bleu, chrf;  // 0 .. 100; BLEU with valid.lowercase and valid.tokenize of the run, chrF2 in the same case
  char bleu_signature[TARN_SIGNATURE_TEXT], chrf_signature[TARN_SIGNATURE_TEXT];
  int64_t sentences, beam;
  double blimp, blimp_low, blimp_high;  // 0 .. 100; mean over paradigms, and its 95 % interval
  int64_t pairs;
  int64_t unknown, truncated, replaced, equal;  // of the pairs, as in tarn_minimal_pairs_result
  tarn_classify_test labels;                    // of a classifier
  tarn_lm_total text;                           // of a text
  double seconds;                               // of translation, or of scoring the pairs or rows
} tarn_testset_result;

TARN_API void tarn_testset_default(tarn_testset_options *options);

// Fails with USAGE (options, a test that is not for the run's model), IO, DATA (files that do not have equally many
// lines, a damaged checkpoint, a file without pairs, a text without tokens), NUMERIC (a result is not finite), MEMORY.
TARN_API tarn_status tarn_testset_run(tarn_testset_result *result, const tarn_testset_options *options) TARN_CHECKED;

// Sweeps: trainings of several variants of one configuration with several seeds, compared under the same conditions.
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

// What the FFN widths of a variant are changed to match, in the base configuration with the sweep's `set`.
typedef enum tarn_sweep_equalize {
  TARN_SWEEP_EQUALIZE_NO,
  TARN_SWEEP_EQUALIZE_PARAMETERS,  // "parameters": trained and frozen together, each set of weights once
  TARN_SWEEP_EQUALIZE_TRAINED,     // "trained": trained parameters
  TARN_SWEEP_EQUALIZE_FLOPS,       // "flops": floating-point operations a token, forward and backward
  TARN_SWEEP_EQUALIZE_COUNT
} tarn_sweep_equalize;
// "no" and the words above; NULL for another value.
TARN_API const char *tarn_sweep_equalize_name(tarn_sweep_equalize equalize);

typedef struct tarn_sweep_variant {
  const char *name;            // letters, digits, _ - + and . inside; the name of its folder
  const char *const *changes;  // (change_count) what it sets: "kinds.R.ffn=512"
  size_t change_count;
  const char *grid;    // the variant in the file of which it is a grid point, "full" for "full+lr-0.0001"; NULL: none
  size_t point_count;  // how many of `changes`, the last ones, are the point's values; 0 without a grid
  const tarn_config *config;  // resolved, with the first seed
  tarn_plan plan;             // of it, without parts
  tarn_sweep_equalize equalize;
  const char *const *widths;  // (width_count) what equalizing set: "kinds.R.ffn=608"
  size_t width_count;
  double measure, base_measure;  // parameters or operations of the variant and of the base; 0 without equalize.
                                 // More than 1 % apart: no width comes nearer, and a warning was logged
  double epoch_seconds;          // of training, by tarn_sweep_estimate(); 0: not known
  double run_seconds;            // of training, by tarn_sweep_estimate(): the budget, else to max_updates or
                                 // max_epochs; 0: not known
} tarn_sweep_variant;

typedef enum tarn_sweep_state {
  TARN_SWEEP_WAITING,   // nothing is done yet
  TARN_SWEEP_BEGUN,     // it was stopped, and continues from its last checkpoint
  TARN_SWEEP_TRAINED,   // the training is over, the test is not done yet
  TARN_SWEEP_FINISHED,  // all is done
  TARN_SWEEP_FAILED     // see `message`; it runs again only with retry_failed
} tarn_sweep_state;
// "waiting", "begun", "trained", "finished" or "failed"; NULL for another value.
TARN_API const char *tarn_sweep_state_name(tarn_sweep_state state);

typedef struct tarn_sweep_run {
  size_t variant;  // index
  int64_t seed;
  const char *path;   // run directory; NULL for a sweep without a folder
  const char *reuse;  // finished run of another sweep that will be copied in place of a training; NULL: none
  tarn_sweep_state state;
  const char *message;  // of a failed run; else NULL
  int64_t update;       // where the training stands
  double seconds;       // training time so far
  double loss;          // of the newest line of the log; NAN: not known
  // Scores in validation, by measure (tarn/measure.h), of the checkpoint that is tested (test_checkpoint); while it
  // trains with AUTO, BEST and AVERAGE the best so far, with LAST the newest; NAN: not known.
  double valid[TARN_MEASURES];
  double test_bleu, test_blimp;  // NAN: not known
  double test[TARN_MEASURES];    // scores of test_labelled or test_text by measure; NAN: not known
  double idle;                   // seconds since its log grew, by the clocks of the folder and of this machine; NAN:
                                 // not known, or tarn_sweep_look() was not called yet
  // The newest job that this run was submitted in to a batch system, as "123_4", and the job's state in capitals as the
  // system names it ("PENDING", "RUNNING", "TIMEOUT", ...), with the reason if it is pending. NULL: none, or no longer
  // known.
  const char *job, *job_state;
} tarn_sweep_run;

typedef struct tarn_sweep {
  const char *name;    // key `name`, else the file's name without .yaml
  const char *folder;  // of the runs
  const tarn_sweep_variant *variants;
  size_t variant_count;
  // Index; of a variant with a grid, its first point. tarn/lab/results.h compares with the point that validated best.
  size_t baseline;
  const int64_t *seeds;
  size_t seed_count;
  const tarn_sweep_run *runs;  // in the order in which they run: all variants with the first seed, then the second, ...
  size_t run_count;
  int64_t parallel;       // runs at a time
  int64_t threads;        // of a run
  double budget_seconds;  // training time of every run; 0: none, the configurations have limits of their own
  const char *test_source, *test_reference;  // NULL: no translations are tested
  const char *test_blimp;                    // folder of minimal pairs for language models; NULL: none
  const char *test_labelled;                 // prefix of a shard with labels, for classifiers; NULL: none
  const char *test_text;                     // text for language models; NULL: none
  int64_t test_window, test_stride;          // of test_text: tokens of a window (0: model.max_length) that advances by
                                             // test_stride tokens; stride 0: the text is scored line by line
  int64_t test_beam;                         // 0: translate.beam
  tarn_translate_precision test_precision;   // default fp32
  tarn_checkpoint_choice test_checkpoint;    // which one of a run is tested; default AUTO
  int rank;  // of this process among those that share the sweep with launcher MPI, of which rank 0 reports; set by
             // tarn_sweep_run_all()
  struct tarn__sweep_memory *memory;
} tarn_sweep;

// Who starts the runs, and where.
typedef enum tarn_sweep_launcher {
  TARN_SWEEP_LAUNCHER_LOCAL,  // "local": processes of this machine, `parallel` at a time
  TARN_SWEEP_LAUNCHER_SLURM,  // "slurm": array jobs of Slurm, one task for each run
  TARN_SWEEP_LAUNCHER_MPI,    // "mpi": the processes that mpirun or srun started together, each of which takes the next
                              // run that is free
  TARN_SWEEP_LAUNCHER_COUNT
} tarn_sweep_launcher;
// The words above; NULL for another value.
TARN_API const char *tarn_sweep_launcher_name(tarn_sweep_launcher launcher);

typedef enum tarn_sweep_event_kind {
  TARN_SWEEP_EVENT_SKIPPED,   // it was finished, or had failed, before
  TARN_SWEEP_EVENT_STARTED,   // training begins or continues
  TARN_SWEEP_EVENT_PROGRESS,  // its log has grown
  TARN_SWEEP_EVENT_TRAINED,   // training is over; the test set is next
  TARN_SWEEP_EVENT_FINISHED,
  TARN_SWEEP_EVENT_FAILED,
  TARN_SWEEP_EVENT_STOPPED,    // it saved its state because somebody asked it to
  TARN_SWEEP_EVENT_REUSED,     // copied from another sweep
  TARN_SWEEP_EVENT_SUBMITTED,  // a job was submitted for it
  TARN_SWEEP_EVENT_LOST        // its job ended before the run was over: see job_state
} tarn_sweep_event_kind;

typedef struct tarn_sweep_event {
  tarn_sweep_event_kind kind;
  const tarn_sweep_run *run;
  size_t done, failed, running, count;  // runs of the sweep
  double seconds_left;                  // of the sweep, estimated; negative: not known
} tarn_sweep_event;

typedef struct tarn_sweep_options {
  const char *file;          // sweep file; NULL: the one that the folder keeps from before
  const char *folder;        // of the runs; made if it does not exist. NULL: only to look, with tarn_sweep_open()
  const char *program;       // that has the commands `train`, `test` and `sweep`; NULL: this program (default)
  const char *const *reuse;  // (reuse_count) folders of other sweeps: runs that wait here and are finished there, with
                             // the same settings, seed, test and version of the program, are copied, not trained.
                             // That the data behind the same paths are the same is the caller's word
  size_t reuse_count;
  bool retry_failed;  // runs that failed are tried again: a training resumes from its last checkpoint (default no)
  void (*on_event)(void *user, const tarn_sweep_event *event);  // from tarn_sweep_run_all(); NULL: never
  void *user;
  const volatile sig_atomic_t *save;  // when it changes, the runs that train save their state and continue. NULL: never
  const volatile sig_atomic_t *stop;  // not 0: stop all runs, with their state saved, and return INTERRUPTED. NULL:
                                      // never
  tarn_sweep_launcher launcher;       // default LOCAL
  const char *only;                   // "VARIANT/seed-N": that run alone; with SLURM, as its job does it. NULL: all
  // For SLURM only; NULL or 0: the defaults of Slurm or of its site.
  const char *partition, *account, *time;  // as for sbatch
  // (sbatch_count) Further options of sbatch, which override the sweep's own. Those by which it finds its jobs are
  // refused: --job-name, --array, --clusters, --wrap.
  const char *const *sbatch;
  size_t sbatch_count;
  int64_t most_jobs;  // tasks of one array that run at a time; 0: all
  double interval;    // seconds between two looks at jobs and runs; 0: 10
  bool detach;        // return once the jobs are submitted, without following them
} tarn_sweep_options;

TARN_API void tarn_sweep_default(tarn_sweep_options *options);

// Reads the file, resolves, equalizes, plans and checks all variants, with their data and test set, and looks how far
// the runs in the folder are. Fails with IO or DATA for data that cannot be read, and with USAGE: an unknown key,
// variants that are the same, a seed given twice, runs in the folder that were made with other settings, ...; the line
// names file, line and key. Writes nothing. Warnings go to the log (tarn/process.h).
TARN_API tarn_status tarn_sweep_open(tarn_sweep **sweep, const tarn_sweep_options *options) TARN_CHECKED;

// Estimates how long trainings take and writes it into the variants: their operations (tarn/plan.h) at 0.8 of the speed
// that a product of matrices with the model's d_model, precision and threads reaches at this moment. Takes about a
// tenth of a second a variant. Recurrences, which wait for themselves, take longer than that.
TARN_API tarn_status tarn_sweep_estimate(tarn_sweep *sweep) TARN_CHECKED;

// Seconds until the trainings that are left are over, `parallel` at a time, if each takes `run_seconds` in all, or with
// 0 what tarn_sweep_estimate() wrote into its variant. Runs that are copied take none. No number of processes makes it
// less than the longest one takes. Negative: not known for some variant.
TARN_API double tarn_sweep_training_left(const tarn_sweep *sweep, double run_seconds);

// Runs what is left. A run that fails does not end the sweep; look at `runs`. Fails with BUSY (another sweep works in
// the folder), INTERRUPTED, IO.
// LOCAL and MPI: each training is a process of its own that dies with the thread that called this, and so never
// outlives the sweep.
// SLURM: submits the runs that have no job yet and follows the jobs until all runs are over. `stop` ends this call but
// no job; the next call attaches to the jobs. Runs that are not over when their job ends are submitted again, unless
// somebody cancelled the job; after three jobs in a row without progress the run fails. Fails also with UNSUPPORTED (no
// sbatch), and with IO and the message of sbatch or squeue.
TARN_API tarn_status tarn_sweep_run_all(tarn_sweep *sweep, const tarn_sweep_options *options) TARN_CHECKED;

// Reads again how far all runs have come, and the states of their jobs where the folder has some; writes nothing. A
// batch system that does not answer leaves `job` and `job_state` NULL, with a warning in the log when that begins.
TARN_API tarn_status tarn_sweep_look(tarn_sweep *sweep) TARN_CHECKED;

// Ends the pending and running jobs of the sweep in Slurm; those that are running save their state. `job` and
// `job_state` of the runs tell which they were; *count is their number. A tarn_sweep_run_all() that follows the jobs
// ends too. Fails with UNSUPPORTED if the programs of Slurm are not there, and with IO if Slurm refuses.
TARN_API tarn_status tarn_sweep_cancel(tarn_sweep *sweep, size_t *count) TARN_CHECKED;

TARN_API void tarn_sweep_close(tarn_sweep **sweep);

#ifdef __cplusplus
}
#endif
#endif

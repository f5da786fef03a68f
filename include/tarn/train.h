// Training: turns a description (tarn/config.h) and prepared data (tarn/data.h) into a run directory.
//
// A run directory holds the resolved configuration (config.yaml), the log (log.jsonl, one JSON object per line), a
// lock, and checkpoints: `last` with everything needed to resume, `best` by the validation metric, numbered ones, and
// their average (docs/training.md). Every file is replaced atomically, so checkpoints stay loadable after a kill at any
// moment.
//
// A training is deterministic: the same configuration, data and number of threads give the same bits, however often the
// training was stopped and resumed.
//
//   tarn_train_options options;
//   tarn_train_default(&options);
//   options.config = "model.yaml", options.run = "runs/model";
//   tarn_train *train;
//   if (tarn_train_open(&train, &options) == TARN_STATUS_OK) status = tarn_train_run(train, &result);
//   tarn_train_close(&train);
#ifndef TARN_TRAIN_H
#define TARN_TRAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/measure.h"
#include "tarn/plan.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_train_event_kind {
  TARN_TRAIN_EVENT_UPDATE,   // an optimiser step is done; its loss and gradient norm
  TARN_TRAIN_EVENT_LOG,      // a line was added to the log; means since the previous line
  TARN_TRAIN_EVENT_VALID,    // a validation is done and logged
  TARN_TRAIN_EVENT_FREEZE,   // layers are frozen from now on; logged
  TARN_TRAIN_EVENT_SAVED,    // a checkpoint is on disk
  TARN_TRAIN_EVENT_DYNAMICS  // exponents of the model are computed and logged (dynamics.input)
} tarn_train_event_kind;

// A value in a line of the log.
typedef struct tarn_train_value {
  const char *name;  // "exponent"
  double value;      // finite
} tarn_train_value;

// The argument of the event callback. Pointers are valid during the call.
typedef struct tarn_train_event {
  tarn_train_event_kind kind;
  int64_t update;            // optimiser steps so far
  double epoch;              // passes over the data so far, 1.5 in the middle of the second one
  double seconds;            // training time so far, without validation and saving
  double seconds_left;       // until the nearest limit and the end of the run, wall-clock, with validations; estimated;
                             // negative: unknown
  bool left_at_least;        // seconds_left is without future validations, whose duration is not known yet
  double loss, nll;          // per target token, natural logarithm; loss includes label smoothing; nll: NAN if the task
                             // has none; UPDATE: both NAN if there were no predictions, which changes no weight, and
                             // between two lines of the log on a device with its own memory, where the host does not
                             // fetch them (train.log_every)
  double lr, grad_norm;      // of the update; the norm before clipping, NAN like the loss
  double tokens_per_second;  // source and target tokens together
  const double *scores;      // VALID: [TARN_MEASURES], by measure (tarn/measure.h); NAN: not computed
  const char *set;           // VALID: name of the scored set; NULL: the validation data
  bool best;                 // the best validation so far
  const char *signature;     // of BLEU; NULL: not computed
  const char *path;          // of the saved or validated checkpoint; NULL: the model in memory
  const char *layers;        // FREEZE: the layers, separated by spaces
  double joules;             // of the training so far; NAN: unknown
  const char *line;          // LOG, VALID, FREEZE, DYNAMICS: the line of the log, without newline
  const tarn_train_value *values;  // DYNAMICS: [value_count], in the order of the line
  size_t value_count;
} tarn_train_event;

typedef struct tarn_train tarn_train;

// Lyapunov exponents over a training, which the key dynamics.input of a description asks for. This library does not
// compute them: tarn_dynamics_follow() (tarn/lab/dynamics.h) gives the options these functions. Other programs may give
// their own, for values of their own between two updates; this library shows them where the training stands
// (tarn_train_update(), ...), and no weights, which they read from a checkpoint.
//
// On rank 0 alone, and on no other, `open` is called by tarn_train_open(), also with plan_only; `compute` by
// tarn_train_run() before the first update, every dynamics.every updates and at the end; `close` by tarn_train_close(),
// if `open` succeeded. In `open` nothing is loaded yet: the model has no values, and tarn_train_update() is 0 also
// where a training goes on. In `compute` the model has the weights of that update, never a mean of checkpoints. The
// training is the same with and without them.
//
// Values go to one line of the log, {"kind": "dynamics", "step": ..., "epoch": ..., "time": ..., NAME: VALUE, ...,
// "seconds": ...}, and are curves of results (docs/experiments.md) of the names "dynamics/NAME". The time that they
// take does not count as training time.
typedef struct tarn_train_values tarn_train_values;
enum { TARN_TRAIN_IDENTITY = 33 };  // bytes of a text with its zero byte
typedef struct tarn_train_dynamics {
  // Refuses what cannot be computed, and says in `identity` of what values are computed, as the hash of its text: a
  // training goes on only with the same one. *state is the caller's.
  tarn_status (*open)(void **state, tarn_train *train, char identity[TARN_TRAIN_IDENTITY]);
  // Adds its values. INTERRUPTED stops the training, which computes them again when it goes on.
  tarn_status (*compute)(void *state, tarn_train *train, tarn_train_values *values);
  void (*close)(void *state);
} tarn_train_dynamics;
// Adds a value, with a name of 1 to 64 letters, digits, "_" or "/" that is not there yet and no other key of the line;
// one that is not finite is left out. Fails with USAGE (the name) or MEMORY.
TARN_API tarn_status tarn_train_values_add(tarn_train_values *values, const char *name, double value) TARN_CHECKED;

typedef struct tarn_train_options {
  const char *config;            // description file; NULL with `resume`
  const char *run;               // run directory; created if missing
  const char *const *overrides;  // "train.lr=0.001" and so on; with `resume` only keys that do not affect
  size_t override_count;         // the training itself: limits, intervals of logging, saving and validation, files,
                                 // threads, translate
  const char *folder;            // of the runs of all seeds, if this is one of several: the argument to resume in
                                 // messages; set by tarn_train_list_open(); copied
  bool resume;                   // continue from the last checkpoint of `run`, or from the start if there is none
  bool accept_log;               // with `resume`: continue even if the log does not match the last checkpoint, and mark
                                 // the run (docs/training.md)
  bool plan_only;                // open performs all checks and plans; it allocates no memory for the model and writes
                                 // nothing
  // The communicator between the ranks that train one model together: "self", a single rank, or "mpi", the processes
  // that mpirun or srun started together (docs/ranks.md). NULL (default): mpi if this process was started together with
  // others, else self.
  const char *comm;
  // Set to true when a function fails on a rank other than 0 with a message that rank 0 returns too, so that only one
  // of them need print it. Owned by the caller; NULL: unused.
  bool *told;
  int threads;                                                  // 0: train.threads of the description (default)
  void (*on_event)(void *user, const tarn_train_event *event);  // called from tarn_train_run(); NULL: never
  void *user;
  // Checked after every update and during validation; if it is not 0, the training saves its state and returns
  // TARN_STATUS_INTERRUPTED. Meant to be set by a signal handler. NULL: never.
  const volatile sig_atomic_t *stop;
  // Checked after every update; when it has changed, the training saves its state and continues. Meant to be
  // incremented by a signal handler. NULL: never.
  const volatile sig_atomic_t *save;
  tarn_profile *profile;  // measures tarn_train_run(); owned by the caller. NULL: no profile
  // Computes what dynamics.input asks for; must outlive the training. NULL: such a description can be planned, and is
  // refused by tarn_train_open() otherwise.
  const tarn_train_dynamics *dynamics;
} tarn_train_options;

TARN_API void tarn_train_default(tarn_train_options *options);

// Reads and checks description, vocabularies and data, locks the run directory, plans, compares the plan with the
// available memory, allocates all memory, and initialises the model or loads the last checkpoint. Fails with USAGE
// (description, an override not allowed when resuming, a directory of another run), DATA (files that are damaged or do
// not belong together), IO, MEMORY (with the memory needed and available), BUSY (another process).
TARN_API tarn_status tarn_train_open(tarn_train **train, const tarn_train_options *options) TARN_CHECKED;
TARN_API void tarn_train_close(tarn_train **train);

// The resolved description, the plan, and the number of updates so far; valid until close.
TARN_API const tarn_config *tarn_train_config(const tarn_train *train);
TARN_API const tarn_plan *tarn_train_plan(const tarn_train *train);
TARN_API int64_t tarn_train_update(const tarn_train *train);
// The rank of this process, from 0, and the number of ranks. Only rank 0 writes files and reports events.
TARN_API int tarn_train_rank(const tarn_train *train);
TARN_API int tarn_train_ranks(const tarn_train *train);

// Why a training ended.
typedef enum tarn_train_end {
  TARN_TRAIN_END_UPDATES,   // train.max_updates
  TARN_TRAIN_END_EPOCHS,    // train.max_epochs
  TARN_TRAIN_END_MINUTES,   // train.max_minutes
  TARN_TRAIN_END_PATIENCE,  // train.patience
  TARN_TRAIN_END_PASS       // optimiser ridge has completed its single pass over the data
} tarn_train_end;

// tarn_train_is_over(): whether a training has already reached a limit when it is opened, and which one. Then there is
// nothing to train, and running it only rewrites the average. tarn_train_was_over(): whether an earlier session had
// finished, whatever the limits are now.
TARN_API bool tarn_train_is_over(const tarn_train *train, tarn_train_end *end);
TARN_API bool tarn_train_was_over(const tarn_train *train);

typedef struct tarn_train_result {
  tarn_train_end end;
  int64_t update;                // optimiser steps
  double epoch;                  // passes over the data
  double seconds;                // training time
  double tokens_per_second;      // mean over the training, source and target tokens
  double scores[TARN_MEASURES];  // of the last validation (of the average if there is one), by measure
                                 // (tarn/measure.h); NAN: not computed
  int64_t best_update;           // of the best validation
  double best;                   // its value of valid.metric
  size_t peak_bytes;       // peak resident memory of the process in a session of the run, since it was opened; if the
                           // kernel cannot reset the peak (/proc/self/clear_refs), since the process started
  tarn_cost cost;          // its texts are valid until close
  const char *checkpoint;  // used by `tarn translate RUN` (tarn_checkpoint_find()), with the reason; valid until close
  const char *checkpoint_reason;
} tarn_train_result;

// Trains until a limit is reached, then writes the average, if train.average is set, and result.json. Fails with
// INTERRUPTED (state saved), NUMERIC (a loss or gradient is not finite, or the training has diverged: from update 101
// on, the loss of an update or a validation is a hundred times ln(words) nats per token; the message gives the update
// and the available checkpoint, and so does result.json), IO.
TARN_API tarn_status tarn_train_run(tarn_train *train, tarn_train_result *result) TARN_CHECKED;

// The runs of the options: one, or with train.seeds one per seed, in the folder "<run>/seed-N".
typedef struct tarn_train_list {
  size_t count;
  const tarn_train_options *runs;  // (count) to be opened one after another
  const int64_t *seeds;            // (count); NULL: a single run
  struct tarn__train_list_memory *memory;
} tarn_train_list;

// Reads the description, and for several seeds writes it to "<run>/config.yaml", so that resuming <run> resumes or
// starts every seed. Resuming with overrides changes that description and those of the seeds already begun. Nothing is
// written or changed unless the seeds can be trained this way: fails like tarn_train_open(), with USAGE for an override
// not allowed when resuming, and with BUSY while one of the seeds is training. `options` must not change until close;
// opened trainings may outlive the list.
TARN_API tarn_status tarn_train_list_open(tarn_train_list **list, const tarn_train_options *options) TARN_CHECKED;
TARN_API void tarn_train_list_close(tarn_train_list **list);

#ifdef __cplusplus
}
#endif
#endif

// Training: from a description (tarn/config.h) and prepared data (tarn/data.h) to a run directory.
//
// A run directory holds the resolved configuration (config.yaml), the log (log.jsonl, one JSON object a line), a lock,
// and checkpoints: `last` with all that is needed to resume, `best` by the validation metric, numbered ones, and their
// average (docs/training.md). Every file is replaced atomically, so a kill at any moment leaves loadable checkpoints.
//
// With an equal configuration, equal data and an equal number of threads, a training gives equal bits, whether it ran
// through or was stopped and resumed any number of times.
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
  TARN_TRAIN_EVENT_UPDATE,  // an optimiser step is done; its own loss and gradient norm
  TARN_TRAIN_EVENT_LOG,     // a line was added to the log; means since the line before
  TARN_TRAIN_EVENT_VALID,   // a validation is done and in the log
  TARN_TRAIN_EVENT_FREEZE,  // layers stay as they are from now on; in the log
  TARN_TRAIN_EVENT_SAVED    // a checkpoint is on disk
} tarn_train_event_kind;

// What the receiver of events gets. Pointers are valid during the call.
typedef struct tarn_train_event {
  tarn_train_event_kind kind;
  int64_t update;            // optimiser steps done
  double epoch;              // passes over the data done, 1.5 in the middle of the second one
  double seconds;            // training time so far, without validation and saving
  double seconds_left;       // until the nearest limit and the end of the run, on the wall clock, validations
                             // included; estimated; negative: not known
  bool left_at_least;        // seconds_left is without the validations to come: how long they take is not known yet
  double loss, nll;          // per target token, natural logarithm; loss has the label smoothing; nll: NAN if the task
                             // has none; UPDATE: both NAN if nothing was predicted, which changes no weight, and on a
                             // device with memory of its own between two lines of the log, where the host has not
                             // asked for them (train.log_every)
  double lr, grad_norm;      // of the update; the norm before clipping, or NAN as the loss
  double tokens_per_second;  // source and target tokens together
  const double *scores;      // VALID: [TARN_MEASURES], by measure (tarn/measure.h); NAN: not computed
  const char *set;           // VALID: name of the scored set; NULL: the validation data
  bool best;                 // the best validation so far
  const char *signature;     // of the BLEU; NULL: not computed
  const char *path;          // of the checkpoint that was saved or validated; NULL: the model in memory
  const char *layers;        // FREEZE: which, with spaces between them
  double joules;             // of the training so far; NAN: not known
  const char *line;          // LOG, VALID, FREEZE: the line of the log, without newline
} tarn_train_event;

typedef struct tarn_train_options {
  const char *config;            // description to read; NULL with `resume`
  const char *run;               // run directory; made if it does not exist
  const char *const *overrides;  // "train.lr=0.001" and so on; with `resume` only keys without a part in the course of
  size_t override_count;         // the training: limits, how often to log, save and validate, files, threads, translate
  const char *folder;            // of the runs of all seeds, if it is one of several: what messages tell to resume;
                                 // tarn_train_list_open() sets it; copied
  bool resume;                   // continue from the last checkpoint of `run`, or from the start if there is none
  bool accept_log;               // with `resume`: go on although the log is not the one that the last checkpoint knows,
                                 // and mark the run (docs/training.md)
  bool plan_only;                // open checks everything and plans; it takes no memory for the model, writes nothing
  // The communicator between the ranks that train one model together: "self", one rank alone, or "mpi", the processes
  // that mpirun or srun started together (docs/ranks.md). NULL (default): mpi where this process was started together
  // with others, else self.
  const char *comm;
  // Becomes true where a function fails on another rank than 0 with a line that rank 0 returns too, so that only one of
  // them need print it. The caller's; NULL: nobody wants to know.
  bool *told;
  int threads;                                                  // 0: train.threads of the description (default)
  void (*on_event)(void *user, const tarn_train_event *event);  // called from tarn_train_run(); NULL: never
  void *user;
  // Looked at after every update and within validations; when it is not 0, the training saves its state and returns
  // TARN_STATUS_INTERRUPTED. Meant to be set by a signal handler. NULL: never.
  const volatile sig_atomic_t *stop;
  // Looked at after every update; when it has changed, the training saves its state and continues. Meant to be
  // incremented by a signal handler. NULL: never.
  const volatile sig_atomic_t *save;
  tarn_profile *profile;  // measures tarn_train_run(); the caller's. NULL: nothing is measured
} tarn_train_options;

TARN_API void tarn_train_default(tarn_train_options *options);

typedef struct tarn_train tarn_train;

// Reads and checks description, vocabularies and data, locks the run directory, plans, compares the plan with the
// memory that is available, takes all memory, and initialises the model or loads the last checkpoint. Fails with USAGE
// (description, an override that resuming does not allow, a directory that holds another run), DATA (files that are
// damaged or do not belong together), IO, MEMORY (says how much is needed and available), BUSY (another process).
TARN_API tarn_status tarn_train_open(tarn_train **train, const tarn_train_options *options) TARN_CHECKED;
TARN_API void tarn_train_close(tarn_train **train);

// The resolved description, the plan, and the updates done so far; valid until close.
TARN_API const tarn_config *tarn_train_config(const tarn_train *train);
TARN_API const tarn_plan *tarn_train_plan(const tarn_train *train);
TARN_API int64_t tarn_train_update(const tarn_train *train);
// Which of the ranks this process is, from 0, and how many there are. Rank 0 alone writes, and tells events.
TARN_API int tarn_train_rank(const tarn_train *train);
TARN_API int tarn_train_ranks(const tarn_train *train);

// Why a training ended.
typedef enum tarn_train_end {
  TARN_TRAIN_END_UPDATES,   // train.max_updates
  TARN_TRAIN_END_EPOCHS,    // train.max_epochs
  TARN_TRAIN_END_MINUTES,   // train.max_minutes
  TARN_TRAIN_END_PATIENCE,  // train.patience
  TARN_TRAIN_END_PASS       // optimiser ridge has gone over the data, which is all that it does
} tarn_train_end;

// tarn_train_is_over(): whether a training has reached a limit as it is opened, and which. Then nothing is left to
// train, and running it only writes the average anew. tarn_train_was_over(): whether an earlier session had come to its
// end, whatever the limits are now.
TARN_API bool tarn_train_is_over(const tarn_train *train, tarn_train_end *end);
TARN_API bool tarn_train_was_over(const tarn_train *train);

typedef struct tarn_train_result {
  tarn_train_end end;
  int64_t update;                // optimiser steps
  double epoch;                  // passes over the data
  double seconds;                // training time
  double tokens_per_second;      // over all of it, source and target tokens
  double scores[TARN_MEASURES];  // of the last validation (of the average if there is one), by measure
                                 // (tarn/measure.h); NAN: not computed
  int64_t best_update;           // of the best validation
  double best;                   // its value of valid.metric
  size_t peak_bytes;       // the most memory (resident) that the process held in a session of the run, since it was
                           // opened; where the kernel cannot reset it (/proc/self/clear_refs), since it began
  tarn_cost cost;          // its texts are valid until close
  const char *checkpoint;  // what `tarn translate RUN` takes (tarn_checkpoint_find()), and why; valid until close
  const char *checkpoint_reason;
} tarn_train_result;

// Trains until a limit is reached, then writes the average if train.average asks for it, and result.json. Fails with
// INTERRUPTED (state saved), NUMERIC (a loss or gradient is not finite, or the training has diverged: from update 101
// on an update's loss, or a validation's, is a hundred times ln(words) nats a token; the line says at which update and
// which checkpoint there is; result.json says so too), IO.
TARN_API tarn_status tarn_train_run(tarn_train *train, tarn_train_result *result) TARN_CHECKED;

// The runs that options ask for: one, or with train.seeds one for each seed, in the folder "<run>/seed-N".
typedef struct tarn_train_list {
  size_t count;
  const tarn_train_options *runs;  // (count) to be opened one after the other
  const int64_t *seeds;            // (count); NULL: it is one run
  struct tarn__train_list_memory *memory;
} tarn_train_list;

// Reads the description, and for several seeds writes it as "<run>/config.yaml", so that resuming <run> resumes or
// starts every seed. Resuming with overrides changes that description and those of the seeds that were begun. Nothing
// is written or changed unless the seeds can be trained so: fails as tarn_train_open() does, with USAGE for an override
// that resuming does not allow, and with BUSY while one of the seeds trains. `options` must stay as they are until
// close; trainings that were opened may outlive the list.
TARN_API tarn_status tarn_train_list_open(tarn_train_list **list, const tarn_train_options *options) TARN_CHECKED;
TARN_API void tarn_train_list_close(tarn_train_list **list);

#ifdef __cplusplus
}
#endif
#endif

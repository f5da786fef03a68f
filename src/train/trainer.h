// The state of a training run, for the files that share it: train_*.c, scored_sets.c and those in features/.
#ifndef TARN_TRAIN_TRAINER_H
#define TARN_TRAIN_TRAINER_H

#include "base/energy.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "dist/gradient_overlap.h"
#include "dist/gradient_sum.h"
#include "dist/optim_share.h"
#include "dist/rank_use.h"
#include "optim/adam.h"
#include "run/run_dir.h"
#include "run/run_log.h"
#include "store/checkpoint.h"
#include "tarn/train.h"
#include "train/feature.h"
#include "train/numbers.h"
#include "train/stepper.h"
#include "train/train_cost.h"
#include "train/validator.h"

// State from tarn_train_run() on.
typedef struct tarn__train_session {
  tarn__run_log log;
  sig_atomic_t saves;                    // value of *save last seen
  double saved_at;                       // on the clock of rank 0: time of the last checkpoint
  double step_wall, step_clock;          // seconds spent in steps, by wall clock and by the clock of train.clock
  double validation_seconds;             // duration of the latest validation, possibly in an earlier session; 0: none
  tarn__validation validation;           // the latest one
  double set_seconds[TARN_CONFIG_SETS];  // duration of the latest scoring of each set; 0: none
  double dynamics_seconds;               // duration of the latest computation of exponents; 0: none
  bool validated;
  bool ends;          // a limit is reached, so all sets are scored
  bool data_changed;  // tarn__train_check_data() has failed
} tarn__train_session;

// State of the end.
typedef struct tarn__train_ending {
  char cost_source[TARN__ENERGY_TEXT];
  bool averaged;                // the model holds the average of checkpoints; the last state is on disk
  tarn_checkpoint_found found;  // of the run
} tarn__train_ending;

struct tarn_train {
  // Opened once.
  tarn__comm *comm;      // only rank 0 has a lock, a log and a receiver of events
  tarn__comm *own_comm;  // opened here; NULL: the caller's
  tarn_config *config;
  tarn__run_dir dir;
  char *go_on;                  // the folder named in messages on resuming: that of the run, or of the runs of all
                                // seeds
  bool was_over;                // result.json existed
  bool accept_log;              // resume with a log that does not match,
  char log_why[TARN__LOG_WHY];  // for this reason; "" if it matches
  bool planned_only;
  tarn_plan plan;
  int threads;
  tarn_vocab *source, *target;  // equal pointers if one serves both sides
  tarn__shard shard;
  tarn__batcher *batcher;  // owned by the loader, if there is one
  tarn__loader *loader;
  tarn__model *model;
  tarn__validator *validator;               // NULL: no validation
  tarn__validator *sets[TARN_CONFIG_SETS];  // of config->sets
  const tarn_train_dynamics *dynamics;      // NULL: no exponents are computed, or on another rank
  void *dynamics_state;
  char dynamics_of[TARN_TRAIN_IDENTITY];  // what they are computed of; "": nothing
  tarn__features features;
  int64_t batch;  // number of the current batch within its update
  tarn__stepper stepper;
  tarn__numbers numbers;
  tarn__param_table params, helpers;  // of the model
  tarn__gradient_sum gradient_sum;
  tarn__gradient_overlap *overlap;  // NULL: sums begin when all gradients are complete
  tarn__optim_share optim;
  tarn__rank_use rank_use;
  void *moments;        // memory of all parameters' moments; NULL with a sharded optimiser
  tarn__energy energy;  // open while training runs
  void (*on_event)(void *user, const tarn_train_event *event);
  void *user;
  const volatile sig_atomic_t *stop, *save;
  tarn_profile *profile;
  bool *told;  // the caller's (tarn_train_options); may be NULL
  // The position, stored in checkpoints.
  tarn__progress progress;
  int64_t epoch_batches;  // of the epoch progress.epoch
  tarn__train_session session;
  tarn__train_ending end;
};

// Fails with USAGE unless the options request exactly one thing: a new training run in a run directory, a plan, or a
// resumption.
tarn_status tarn__train_check_options(const tarn_train_options *options) TARN_CHECKED;
// Whether tarn_train_open() would succeed: checks description, data, plan, memory, and with `resume` the last
// checkpoint. Takes no lock and no memory for the model, writes nothing and issues no warnings. *config is the resolved
// description, closed by the caller.
tarn_status tarn__train_check(tarn_config **config, const tarn_train_options *options) TARN_CHECKED;

// As tarn_train_open(), for one of the ranks of `comm`, which must outlive the training run. All ranks make the same
// calls, with options that differ only in `threads`, `stop`, `save` and `profile`, and see the same files. Decisions
// are collective, and a failure of one rank is a failure of all. Only rank 0 has the results of validation. Fails with
// USAGE if the description requests something that works only on one rank.
tarn_status tarn__train_open_rank(tarn_train **train, const tarn_train_options *options, tarn__comm *comm) TARN_CHECKED;

// Opens a training run on one rank with zero weights, for tarn__train_step() only: it has no run directory and writes
// nothing.
tarn_status tarn__train_open_probe(tarn_train **train, const tarn_train_options *options) TARN_CHECKED;

// Rank 0 calls `work` while the others wait: all get its status and progress. A failure other than INTERRUPTED ends
// rank 0 and thereby all.
tarn_status tarn__train_lead(tarn_train *train, tarn_status (*work)(tarn_train *train)) TARN_CHECKED;
// With a sharded optimiser: reads the contents of parts (tarn__part_reader), on rank 0 within tarn__train_lead(), where
// the others send them. `train` is a tarn_train.
tarn_status tarn__train_read_part(void *train, size_t param, tarn__part_array array, void *to, size_t first,
                                  size_t bytes) TARN_CHECKED;
// The same, but the others call `help` instead of waiting; it ends with INTERRUPTED if `work` does.
tarn_status tarn__train_share(tarn_train *train, tarn_status (*work)(tarn_train *train),
                              tarn_status (*help)(tarn_train *train)) TARN_CHECKED;
// Copies the values of all parameters from rank 0.
tarn_status tarn__train_share_values(tarn_train *train) TARN_CHECKED;
// Whether any rank was asked to stop. Sets the clock of all ranks to that of rank 0.
tarn_status tarn__train_asked_to_stop(tarn_train *train, bool *stop) TARN_CHECKED;
// Sums the results of an update's batches over all ranks: losses, tokens, gradients.
tarn_status tarn__train_sum(tarn_train *train, double *loss, double *nll, int64_t *source_tokens) TARN_CHECKED;
// Fails with DATA unless all ranks have the same description, data, program and weights.
tarn_status tarn__train_check_ranks(tarn_train *train) TARN_CHECKED;
// Informs the other ranks that this one cannot continue (tarn__comm_fail()), and the caller that they know.
void tarn__train_fail_all(const tarn_train *train, tarn_status status);

// Writes the resolved description of a run, or of the runs of all seeds.
tarn_status tarn__train_write_config(const tarn__run_dir *dir, const tarn_config *config) TARN_CHECKED;
// Opens the log and truncates it to the current position, after result.json, which covers all of it, has been removed.
// A log that does not match is marked.
tarn_status tarn__train_open_log(tarn_train *train) TARN_CHECKED;
// Sends an event to the receiver, if there is one. Fields common to all events are filled in.
void tarn__train_tell(const tarn_train *train, tarn_train_event *event);
// Writes a record to the log, takes ownership of it, and reports `event` with that line (NULL: reports nothing). Fails
// with MEMORY if the record is NULL or not `whole`.
tarn_status tarn__train_note(tarn_train *train, json_t *record, bool whole, tarn_train_event *event) TARN_CHECKED;
// Passes over the data so far.
double tarn__train_epoch(const tarn_train *train);
// The current time in seconds on the clock of train.clock; only differences are meaningful.
double tarn__train_clock(const tarn_train *train);

// Peak memory of all sessions of the run, in bytes.
int64_t tarn__train_peak(const tarn_train *train);
// Removes RUN/result.json, the outcome of the run, because the run continues. Its peak memory is kept.
tarn_status tarn__train_result_remove(tarn_train *train) TARN_CHECKED;
// Fills in the results known for any outcome, and the process's peak memory.
void tarn__train_result_fill(tarn_train *train, tarn_train_result *result);
// Writes RUN/result.json (docs/training.md) for a run that ended normally or with a number that is not finite. A
// training run that was stopped, or that can continue once its disk has space, has not ended.
tarn_status tarn__train_result_write(tarn_train *train, const tarn_train_result *result,
                                     tarn_status status) TARN_CHECKED;

// Fails with NUMERIC: "WHAT is IS at update N", the available checkpoint, and possible remedies.
tarn_status tarn__train_fail(const tarn_train *train, int64_t update, const char *what, const char *is) TARN_CHECKED;
// The measure of the last validation that shows whether training goes wrong.
double tarn__train_watched(const tarn_train *train);
// Whether a value of this measure, though finite, shows divergence, as defined by the task. The second function fails
// in that case, naming WHAT.
bool tarn__train_has_diverged(const tarn_train *train, double watched);
tarn_status tarn__train_check_diverged(const tarn_train *train, int64_t update, const char *what,
                                       double watched) TARN_CHECKED;
// The same for the value of an update, after the first hundred updates of a run.
tarn_status tarn__train_check_loss(const tarn_train *train, int64_t update, double watched) TARN_CHECKED;

// Fails with IO if a data file, or the cache of frozen layers, was modified or deleted since it was opened
// (base/map.h). Data read since the last call must not be used before: it is called between a step's gradients and its
// update.
tarn_status tarn__train_check_data(tarn_train *train) TARN_CHECKED;
// Handles a failure of training: if the data have changed or another rank has failed, the state, which is unaffected,
// is saved, and the message explains how to resume.
tarn_status tarn__train_rescue(tarn_train *train, tarn_status status) TARN_CHECKED;

// Opens the validator, and one for each of config->sets. The description, the data and the model are open.
tarn_status tarn__train_open_scoring(tarn_train *train) TARN_CHECKED;
void tarn__train_close_scoring(tarn_train *train);
// Bounds of the training batches.
void tarn__train_bounds(const tarn_train *train, tarn__stepper_bounds *bounds);
// Bounds of all scored batches; false: nothing is scored.
bool tarn__train_scoring_bounds(const tarn_train *train, tarn__stepper_bounds *bounds);
// The hashes of the sets in order, separated by spaces, which must be unchanged on resumption; "": no sets.
enum { TARN__SET_HASHES = TARN_CONFIG_SETS * TARN__HASH_TEXT };
void tarn__train_set_hashes(const tarn_train *train, char hashes[TARN__SET_HASHES]);
// Adds the properties of the sets relevant to comparisons to result.json; false: out of memory.
bool tarn__train_describe_sets(const tarn_train *train, json_t *object);
// Runs a validator on all ranks; rank 0 gets the result.
tarn_status tarn__train_validate(tarn_train *train, tarn__validator *validator, tarn__validation *result) TARN_CHECKED;
// Scoring of sets. due() returns whether one is due, at the end of training or before it. tarn__train_score_sets()
// scores all that are due, with the help of the other ranks.
bool tarn__train_sets_due(const tarn_train *train, bool ends);
tarn_status tarn__train_score_sets(tarn_train *train) TARN_CHECKED;
tarn_status tarn__train_help_sets(tarn_train *train) TARN_CHECKED;
// Adds every computed measure to a record, with "valid_" or "" before its name; false: out of memory.
bool tarn__train_add_scores(json_t *record, const char *prefix, const tarn__validation *validation);

// Exponents of the model (tarn_train_dynamics). Opens what the options give, on rank 0; without it, only a plan can be
// made.
tarn_status tarn__train_open_dynamics(tarn_train *train, const tarn_train_options *options) TARN_CHECKED;
void tarn__train_close_dynamics(tarn_train *train);
// Whether they are due, at the end of training or before it; and on rank 0, computes and logs them.
bool tarn__train_dynamics_due(const tarn_train *train, bool ends);
tarn_status tarn__train_compute_dynamics(tarn_train *train) TARN_CHECKED;

// Writes `last`, preceded by a numbered checkpoint if `numbered`.
tarn_status tarn__train_save(tarn_train *train, bool numbered) TARN_CHECKED;
tarn_status tarn__train_save_best(tarn_train *train) TARN_CHECKED;
// Averages the last train.average numbered checkpoints into a file and into the model.
tarn_status tarn__train_average(tarn_train *train) TARN_CHECKED;

// One optimiser step. Adds sums over its batches to the progress; the result is for the event.
typedef struct tarn__train_update_result {
  double loss, nll, norm, rate;  // loss and nll per target token, NAN if none was predicted
} tarn__train_update_result;
tarn_status tarn__train_step(tarn_train *train, tarn__train_update_result *result) TARN_CHECKED;

#endif

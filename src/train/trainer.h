// What a training consists of, for the files that share it: train_*.c, scored_sets.c and those in features/.
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

// What running holds, from tarn_train_run() on.
typedef struct tarn__train_session {
  tarn__run_log log;
  sig_atomic_t saves;                    // of *save, what was seen
  double saved_at;                       // on the clock of rank 0: when it wrote the last checkpoint
  double step_wall, step_clock;          // seconds in the steps, on the wall and on the clock of train.clock
  double validation_seconds;             // of the newest validation, of an earlier session too; 0: there was none
  tarn__validation validation;           // the newest one
  double set_seconds[TARN_CONFIG_SETS];  // of the newest score of each set; 0: there was none
  bool validated;
  bool ends;          // a limit is reached, so all sets are scored
  bool data_changed;  // tarn__train_check_data() has failed
} tarn__train_session;

// What belongs to the end.
typedef struct tarn__train_ending {
  char cost_source[TARN__ENERGY_TEXT];
  bool averaged;                // the model holds the mean of checkpoints; the last state is on disk
  tarn_checkpoint_found found;  // of the run
} tarn__train_ending;

struct tarn_train {
  // Opened once.
  tarn__comm *comm;      // rank 0 alone has a lock, a log and a receiver of events
  tarn__comm *own_comm;  // that was opened here; NULL: the caller's
  tarn_config *config;
  tarn__run_dir dir;
  char *go_on;                  // the folder that is named to go on with: that of the run, or of the runs of all seeds
  bool was_over;                // result.json was there
  bool accept_log;              // go on with a log that does not fit,
  char log_why[TARN__LOG_WHY];  // which says why it does not; "" if it does
  bool planned_only;
  tarn_plan plan;
  int threads;
  tarn_vocab *source, *target;  // equal pointers when one serves both sides
  tarn__shard shard;
  tarn__batcher *batcher;  // the loader's while there is one
  tarn__loader *loader;
  tarn__model *model;
  tarn__validator *validator;               // NULL: no validation
  tarn__validator *sets[TARN_CONFIG_SETS];  // of config->sets
  tarn__features features;
  int64_t batch;  // number of the batch at hand among those of its update
  tarn__stepper stepper;
  tarn__numbers numbers;
  tarn__param_table params, helpers;  // of the model
  tarn__gradient_sum gradient_sum;
  tarn__gradient_overlap *overlap;  // NULL: sums begin when all gradients are there
  tarn__optim_share optim;
  tarn__rank_use rank_use;
  void *moments;        // memory of all parameters' moments; NULL where ranks share the optimiser
  tarn__energy energy;  // open while the training runs
  void (*on_event)(void *user, const tarn_train_event *event);
  void *user;
  const volatile sig_atomic_t *stop, *save;
  tarn_profile *profile;
  bool *told;  // the caller's (tarn_train_options); may be NULL
  // Where it stands, which checkpoints hold.
  tarn__progress progress;
  int64_t epoch_batches;  // of the epoch of progress.epoch
  tarn__train_session session;
  tarn__train_ending end;
};

// Fails with USAGE unless the options ask for one thing: a new training in a run directory, a plan, or going on.
tarn_status tarn__train_check_options(const tarn_train_options *options) TARN_CHECKED;
// Whether tarn_train_open() would find everything in order: description, data, plan, memory, and with `resume` the last
// checkpoint. Takes no lock and no memory for the model, writes and warns of nothing. *config, which the caller closes,
// is the resolved description.
tarn_status tarn__train_check(tarn_config **config, const tarn_train_options *options) TARN_CHECKED;

// tarn_train_open() as one of the ranks of `comm`, which must outlive the training. All ranks make the same calls with
// options that differ in `threads`, `stop`, `save` and `profile` alone, and see the same files. What ends one ends all:
// decisions are taken together, and a failure of one is the failure of all. Only rank 0 has the results of validation.
// Fails with USAGE where the description asks for what works on one rank alone.
tarn_status tarn__train_open_rank(tarn_train **train, const tarn_train_options *options, tarn__comm *comm) TARN_CHECKED;

// A training on one rank that makes updates by tarn__train_step() only, with weights of zero: it has no run directory,
// and writes nothing.
tarn_status tarn__train_open_probe(tarn_train **train, const tarn_train_options *options) TARN_CHECKED;

// Rank 0 works, the others wait for it: all have its status and know where the training stands. A failure other than
// INTERRUPTED ends rank 0 and thereby all.
tarn_status tarn__train_lead(tarn_train *train, tarn_status (*work)(tarn_train *train)) TARN_CHECKED;
// Where ranks share the optimiser: reads what parts hold (tarn__part_reader), on rank 0 within tarn__train_lead(), in
// which the others send it. `train` is a tarn_train.
tarn_status tarn__train_read_part(void *train, size_t param, tarn__part_array array, void *to, size_t first,
                                  size_t bytes) TARN_CHECKED;
// The same where the others do not only wait: they `help`, which ends with INTERRUPTED where `work` does.
tarn_status tarn__train_share(tarn_train *train, tarn_status (*work)(tarn_train *train),
                              tarn_status (*help)(tarn_train *train)) TARN_CHECKED;
// The values of all parameters are those of rank 0 from now on.
tarn_status tarn__train_share_values(tarn_train *train) TARN_CHECKED;
// Whether any rank was asked to stop. The clock is rank 0's from here on.
tarn_status tarn__train_asked_to_stop(tarn_train *train, bool *stop) TARN_CHECKED;
// Adds up over all ranks what the batches of an update gave: losses, tokens, gradients.
tarn_status tarn__train_sum(tarn_train *train, double *loss, double *nll, int64_t *source_tokens) TARN_CHECKED;
// Fails with DATA unless all ranks have the same description, data, program and weights.
tarn_status tarn__train_check_ranks(tarn_train *train) TARN_CHECKED;
// Tells the others that this rank cannot go on (tarn__comm_fail()), and the caller that they know.
void tarn__train_fail_all(const tarn_train *train, tarn_status status);

// Writes the resolved description of a run, or of the runs of all seeds.
tarn_status tarn__train_write_config(const tarn__run_dir *dir, const tarn_config *config) TARN_CHECKED;
// Opens the log, which is cut back to where the training stands once result.json, which knows all of it, is away. A log
// that does not fit is marked.
tarn_status tarn__train_open_log(tarn_train *train) TARN_CHECKED;
// Tells the receiver of events, if there is one. Fields that every event has are filled in.
void tarn__train_tell(const tarn_train *train, tarn_train_event *event);
// Writes a record to the log, takes ownership of it, and reports `event` with that line (NULL: reports nothing). Fails
// with MEMORY where the record is NULL or not `whole`.
tarn_status tarn__train_note(tarn_train *train, json_t *record, bool whole, tarn_train_event *event) TARN_CHECKED;
// Passes over the data so far.
double tarn__train_epoch(const tarn_train *train);
// Now, in seconds on the clock of train.clock; only differences mean something.
double tarn__train_clock(const tarn_train *train);

// The most memory that a session of the run held, in bytes.
int64_t tarn__train_peak(const tarn_train *train);
// Takes away RUN/result.json, which says how the run ended, because the run goes on. The peak of memory in it is kept.
tarn_status tarn__train_result_remove(tarn_train *train) TARN_CHECKED;
// Fills what is known of a training however it ended, and the memory that the process took at the most.
void tarn__train_result_fill(tarn_train *train, tarn_train_result *result);
// Writes RUN/result.json (docs/training.md) for a run that ended as it should or with a number that is not finite; a
// training that was stopped, or that can go on once its disk has room, has not ended.
tarn_status tarn__train_result_write(tarn_train *train, const tarn_train_result *result,
                                     tarn_status status) TARN_CHECKED;

// NUMERIC: "WHAT is IS at update N", which checkpoint there is, and what can help.
tarn_status tarn__train_fail(const tarn_train *train, int64_t update, const char *what, const char *is) TARN_CHECKED;
// Of the last validation, the measure that shows whether the training goes wrong.
double tarn__train_watched(const tarn_train *train);
// Whether a value of it is that of a model that has diverged, however finite its numbers; the task knows. The second
// fails then, for the WHAT that it is.
bool tarn__train_has_diverged(const tarn_train *train, double watched);
tarn_status tarn__train_check_diverged(const tarn_train *train, int64_t update, const char *what,
                                       double watched) TARN_CHECKED;
// That of an update, which a run must have brought below that after its first hundred.
tarn_status tarn__train_check_loss(const tarn_train *train, int64_t update, double watched) TARN_CHECKED;

// Fails with IO if a file of the data, or the cache of frozen layers, was changed or lost since it was opened
// (base/map.h). Nothing that was read since the last call may be used before: it is called between a step's gradients
// and its update.
tarn_status tarn__train_check_data(tarn_train *train) TARN_CHECKED;
// What a training does that failed: where the data have changed or another rank has failed, its state, which that has
// not touched, is saved, and the line says how to go on.
tarn_status tarn__train_rescue(tarn_train *train, tarn_status status) TARN_CHECKED;

// Opens the validator, and one for each of config->sets. The description, the data and the model are open.
tarn_status tarn__train_open_scoring(tarn_train *train) TARN_CHECKED;
void tarn__train_close_scoring(tarn_train *train);
// Bounds of the batches that are trained on.
void tarn__train_bounds(const tarn_train *train, tarn__stepper_bounds *bounds);
// Bounds of all that is scored; false: nothing is.
bool tarn__train_scoring_bounds(const tarn_train *train, tarn__stepper_bounds *bounds);
// The hashes of the sets, as a training that goes on must have them again, in their order, a space between two; "":
// there are none.
enum { TARN__SET_HASHES = TARN_CONFIG_SETS * TARN__HASH_TEXT };
void tarn__train_set_hashes(const tarn_train *train, char hashes[TARN__SET_HASHES]);
// Adds what a comparison must know of the sets to result.json; false: memory was lacking.
bool tarn__train_describe_sets(const tarn_train *train, json_t *object);
// Runs a validator, as all ranks do; rank 0 has the result.
tarn_status tarn__train_validate(tarn_train *train, tarn__validator *validator, tarn__validation *result) TARN_CHECKED;
// Scores sets. due() says whether one has to be, at the end of the training or before it; tarn__train_score_sets() does
// all that are, and the other ranks help it.
bool tarn__train_sets_due(const tarn_train *train, bool ends);
tarn_status tarn__train_score_sets(tarn_train *train) TARN_CHECKED;
tarn_status tarn__train_help_sets(tarn_train *train) TARN_CHECKED;
// Adds every measure that was computed to a record, "valid_" or "" before its word; false: memory was lacking.
bool tarn__train_add_scores(json_t *record, const char *prefix, const tarn__validation *validation);

// Writes `last`, and before it a numbered checkpoint if asked to.
tarn_status tarn__train_save(tarn_train *train, bool numbered) TARN_CHECKED;
tarn_status tarn__train_save_best(tarn_train *train) TARN_CHECKED;
// Averages the last train.average numbered checkpoints into a file and into the model.
tarn_status tarn__train_average(tarn_train *train) TARN_CHECKED;

// One optimiser step. Sums over its batches are added to the progress; what is returned is for the event.
typedef struct tarn__train_update_result {
  double loss, nll, norm, rate;  // loss and nll per target token, NAN if none was predicted
} tarn__train_update_result;
tarn_status tarn__train_step(tarn_train *train, tarn__train_update_result *result) TARN_CHECKED;

#endif

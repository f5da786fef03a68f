// What a training can do besides its steps, or in their place: with layers, with what goes from batch to batch, with
// the gradients. A feature is a file in train/features/ and a line in features.c; the loop, the step and the plan call
// the hooks of those that a description asks for, in the order of the table, and know none of them.
//
// A hook that a feature does not need is NULL. All hooks of a training are given its state, zeroed before `open`.
#ifndef TARN_TRAIN_FEATURE_H
#define TARN_TRAIN_FEATURE_H

#include <jansson.h>

#include "data/batch.h"
#include "model/model.h"
#include "model/plan.h"
#include "store/checkpoint.h"
#include "tarn/train.h"

struct tarn__stepper;
struct tarn__stepper_bounds;
struct tarn__train_update_result;

// What a feature's share of a plan is made from: the model, its largest batch, and what is validated on.
typedef struct tarn__plan_use {
  const tarn__model *model;
  const tarn__plan_batch *batch;
  const tarn__shard *sets;  // [set_count]; file_bytes 0: it cannot be read
  int32_t set_count;
} tarn__plan_use;

// What a graph is built for.
typedef enum tarn__step_kind {
  TARN__STEP_TRAIN,
  TARN__STEP_EVALUATE,
  TARN__STEP_STATES  // the rows that the output layer reads (tarn__stepper_states())
} tarn__step_kind;

typedef struct tarn__feature {
  const char *name;
  size_t state_bytes;

  // --- the description
  bool (*wanted)(const tarn_config *config);  // NULL: by every description
  // The gradients of an update must all be there before the first parameter is updated, or nothing may fail meanwhile:
  // a model cannot update in its backward pass (graph/update.h).
  bool needs_gradients;
  // Fails with USAGE for a model, and with DATA for training data, with which it does not work.
  tarn_status (*check_model)(const tarn__model *model);
  tarn_status (*check_data)(const tarn_config *config, const tarn__shard *shard);
  // Adds the memory that it takes, on one rank; and, in bytes, what other ranks add to that.
  void (*plan)(tarn_plan *plan, const tarn__plan_use *use);
  size_t (*plan_ranks)(const tarn_train *train);

  // --- a training
  // Takes memory; the model has its own, but no values yet.
  tarn_status (*open)(tarn_train *train, void *state);
  void (*close)(tarn_train *train, void *state);
  // From the checkpoint that the training goes on from, behind the model's values and train->progress; and to one.
  tarn_status (*load)(tarn_train *train, void *state, const tarn__checkpoint_file *file);
  void (*save)(tarn_train *train, void *state, tarn__checkpoint_extra *extra);
  // Before the first update of a session. `logged`: what is to be said is in the log that the run goes on with.
  tarn_status (*begin)(tarn_train *train, void *state, bool logged);
  // Then, when the untrained model has been validated. INTERRUPTED stops the training.
  tarn_status (*ready)(tarn_train *train, void *state);

  // Fails with IO if a file that it reads was changed or lost since it was opened (base/map.h).
  tarn_status (*check_files)(tarn_train *train, void *state);

  // --- an update, on every rank
  // Makes it in place of tarn__train_step(); and with that whether the training is over, and how.
  tarn_status (*update)(tarn_train *train, void *state, struct tarn__train_update_result *result);
  bool (*over)(const tarn_train *train, tarn_train_end *end);
  // Before update number `update`, from 1; and before the batches of an update or of a pass (`first`: of an epoch).
  tarn_status (*before_update)(tarn_train *train, void *state, int64_t update);
  tarn_status (*before_batches)(tarn_train *train, void *state, bool first);
  // All gradients of the update are there, and those of several ranks summed.
  tarn_status (*after_gradients)(tarn_train *train, void *state);
  // The gradients are finite and the model's parameters were updated; and then, of an update that predicted something.
  tarn_status (*optimise)(tarn_train *train, void *state, int64_t update);
  tarn_status (*optimised)(tarn_train *train, void *state);
  // The update counts in train->progress, or the batch of a pass is done.
  void (*advance)(tarn_train *train, void *state);
  // The receiver of events was told of the update (rank 0); and then on every rank, after its line of the log.
  tarn_status (*told)(tarn_train *train, void *state);
  tarn_status (*after_update)(tarn_train *train, void *state);
  // Adds fields to a line of the log; false: memory was lacking. And on every rank: what comes is for the next line.
  bool (*log)(const tarn_train *train, const void *state, json_t *record);
  void (*logged)(tarn_train *train, void *state);

  // --- graphs
  // The largest batch that can come is planned in a stepper: says what its graph will not compute, and may plan a graph
  // of its own (tarn__stepper_plan_bottom()).
  tarn_status (*plan_graph)(tarn_train *train, void *state, struct tarn__stepper *stepper, const tarn__batch *largest,
                            tarn__step_kind kind, tarn__model_shortcuts *shortcuts);
  // The same for a batch, before its graph is built; and when it has run.
  tarn_status (*shorten)(tarn_train *train, void *state, const tarn__batch *batch, tarn__step_kind kind,
                         tarn__model_shortcuts *shortcuts);
  tarn_status (*ran)(tarn_train *train, void *state, const tarn__graph *graph, tarn__step_kind kind);
  // Around the batches of an evaluation on this rank, one after the other (`tracks`: tarn__batcher_tracks()).
  tarn_status (*before_pass)(tarn_train *train, void *state, int64_t tracks);
  void (*after_pass)(tarn_train *train, void *state);
} tarn__feature;

enum { TARN__FEATURES_MOST = 16 };

// The features of a training. Zero-initialise it; then none is in use, and every call below does nothing.
typedef struct tarn__features {
  tarn_train *train;
  int count;
  const tarn__feature *in_use[TARN__FEATURES_MOST];
  void *states[TARN__FEATURES_MOST];
} tarn__features;

// --- of a description alone
tarn_status tarn__features_check_model(const tarn__model *model) TARN_CHECKED;
tarn_status tarn__features_check_data(const tarn_config *config, const tarn__shard *shard) TARN_CHECKED;
void tarn__features_plan(tarn_plan *plan, const tarn__plan_use *use);
size_t tarn__features_plan_ranks(const tarn_train *train);
// Whether one of them needs all gradients of an update at once.
bool tarn__features_need_gradients(const tarn_config *config);
// Whether one of them makes the updates; if so, and `train` has made one, whether it is over.
bool tarn__features_update(const tarn_config *config);
bool tarn__features_over(const tarn_train *train, tarn_train_end *end);

// --- of a training: the hooks of the same names, of all features in use
tarn_status tarn__features_open(tarn__features *features, tarn_train *train) TARN_CHECKED;
void tarn__features_close(tarn__features *features);
tarn_status tarn__features_load(const tarn__features *features, const tarn__checkpoint_file *file) TARN_CHECKED;
void tarn__features_save(const tarn__features *features, tarn__checkpoint_extra *extra);
tarn_status tarn__features_begin(const tarn__features *features, bool logged) TARN_CHECKED;
tarn_status tarn__features_ready(const tarn__features *features) TARN_CHECKED;
tarn_status tarn__features_check_files(const tarn__features *features) TARN_CHECKED;
tarn_status tarn__features_make_update(const tarn__features *features,
                                       struct tarn__train_update_result *result) TARN_CHECKED;
tarn_status tarn__features_before_update(const tarn__features *features, int64_t update) TARN_CHECKED;
tarn_status tarn__features_before_batches(const tarn__features *features, bool first) TARN_CHECKED;
tarn_status tarn__features_after_gradients(const tarn__features *features) TARN_CHECKED;
tarn_status tarn__features_optimise(const tarn__features *features, int64_t update) TARN_CHECKED;
tarn_status tarn__features_optimised(const tarn__features *features) TARN_CHECKED;
void tarn__features_advance(const tarn__features *features);
tarn_status tarn__features_told(const tarn__features *features) TARN_CHECKED;
tarn_status tarn__features_after_update(const tarn__features *features) TARN_CHECKED;
bool tarn__features_log(const tarn__features *features, json_t *record);
void tarn__features_logged(const tarn__features *features);
tarn_status tarn__features_plan_graph(const tarn__features *features, struct tarn__stepper *stepper,
                                      const tarn__batch *largest, tarn__step_kind kind,
                                      tarn__model_shortcuts *shortcuts) TARN_CHECKED;
tarn_status tarn__features_shorten(const tarn__features *features, const tarn__batch *batch, tarn__step_kind kind,
                                   tarn__model_shortcuts *shortcuts) TARN_CHECKED;
tarn_status tarn__features_ran(const tarn__features *features, const tarn__graph *graph,
                               tarn__step_kind kind) TARN_CHECKED;
tarn_status tarn__features_before_pass(const tarn__features *features, int64_t tracks) TARN_CHECKED;
void tarn__features_after_pass(const tarn__features *features);

// The state of a feature in use by its name, for tests; NULL: it is not in use.
void *tarn__features_state(const tarn__features *features, const char *name);

#endif

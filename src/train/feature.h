// Optional behaviour of training, in addition to its steps or replacing them: for layers, for state passed from batch
// to batch, for gradients. A feature is a file in train/features/ and a line in features.c. The loop, the step and the
// plan call the hooks of the features enabled by a description, in the order of the table, and know none of them by
// name.
//
// Unused hooks are NULL. All hooks of a training run get the feature's state, which is zeroed before `open`.
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

// The input of a feature's contribution to a plan: the model, its largest batch, and the validation data.
typedef struct tarn__plan_use {
  const tarn__model *model;
  const tarn__plan_batch *batch;
  const tarn__shard *sets;  // [set_count]; file_bytes is 0 if unreadable
  int32_t set_count;
} tarn__plan_use;

// The purpose of a graph.
typedef enum tarn__step_kind {
  TARN__STEP_TRAIN,
  TARN__STEP_EVALUATE,
  TARN__STEP_STATES  // the input rows of the output layer (tarn__stepper_states())
} tarn__step_kind;

typedef struct tarn__feature {
  const char *name;
  size_t state_bytes;

  // --- the description
  bool (*wanted)(const tarn_config *config);  // NULL: always enabled
  // All gradients of an update must exist before the first parameter is updated, or nothing may fail in between: the
  // model cannot update in its backward pass (graph/update.h).
  bool needs_gradients;
  // Fail if the feature does not work with a model (USAGE) or with training data (DATA).
  tarn_status (*check_model)(const tarn__model *model);
  tarn_status (*check_data)(const tarn_config *config, const tarn__shard *shard);
  // Add the memory that the feature needs on one rank; and return the additional bytes with several ranks.
  void (*plan)(tarn_plan *plan, const tarn__plan_use *use);
  size_t (*plan_ranks)(const tarn_train *train);

  // --- a training run
  // Allocates memory; the model's memory is allocated but has no values yet.
  tarn_status (*open)(tarn_train *train, void *state);
  void (*close)(tarn_train *train, void *state);
  // Load from the checkpoint that is resumed, after the model's values and train->progress; and save to one.
  tarn_status (*load)(tarn_train *train, void *state, const tarn__checkpoint_file *file);
  void (*save)(tarn_train *train, void *state, tarn__checkpoint_extra *extra);
  // Called before the first update of a session. `logged`: the resumed log already contains the feature's records.
  tarn_status (*begin)(tarn_train *train, void *state, bool logged);
  // Called next, after validation of the untrained model. INTERRUPTED stops training.
  tarn_status (*ready)(tarn_train *train, void *state);

  // Fails with IO if a file that the feature reads was modified or deleted since it was opened (base/map.h).
  tarn_status (*check_files)(tarn_train *train, void *state);

  // --- an update, on every rank
  // Replaces tarn__train_step(); such a feature also determines whether training is over, and how it ended.
  tarn_status (*update)(tarn_train *train, void *state, struct tarn__train_update_result *result);
  bool (*over)(const tarn_train *train, tarn_train_end *end);
  // Before update number `update`, from 1; and before the batches of an update or of a pass (`first`: of an epoch).
  tarn_status (*before_update)(tarn_train *train, void *state, int64_t update);
  tarn_status (*before_batches)(tarn_train *train, void *state, bool first);
  // All gradients of the update are complete and summed over ranks.
  tarn_status (*after_gradients)(tarn_train *train, void *state);
  // The gradients are finite and the model's parameters have been updated; then, only for an update with predictions.
  tarn_status (*optimise)(tarn_train *train, void *state, int64_t update);
  tarn_status (*optimised)(tarn_train *train, void *state);
  // The update has been counted in train->progress, or the batch of a pass is done.
  void (*advance)(tarn_train *train, void *state);
  // The receiver of events has been notified of the update (rank 0); then, on every rank, its line of the log, if any,
  // has been written.
  tarn_status (*told)(tarn_train *train, void *state);
  tarn_status (*after_update)(tarn_train *train, void *state);
  // Adds fields to a line of the log; false: out of memory. Then, on every rank: later fields belong to the next line.
  bool (*log)(const tarn_train *train, const void *state, json_t *record);
  void (*logged)(tarn_train *train, void *state);

  // --- graphs
  // The largest possible batch is being planned in a stepper: sets the shortcuts of its graph, and may plan a graph of
  // its own (tarn__stepper_plan_bottom()).
  tarn_status (*plan_graph)(tarn_train *train, void *state, struct tarn__stepper *stepper, const tarn__batch *largest,
                            tarn__step_kind kind, tarn__model_shortcuts *shortcuts);
  // The same for an actual batch, before its graph is built; and after it has run.
  tarn_status (*shorten)(tarn_train *train, void *state, const tarn__batch *batch, tarn__step_kind kind,
                         tarn__model_shortcuts *shortcuts);
  tarn_status (*ran)(tarn_train *train, void *state, const tarn__graph *graph, tarn__step_kind kind);
  // Before and after the batches of an evaluation on this rank, which are consecutive (`tracks`:
  // tarn__batcher_tracks()).
  tarn_status (*before_pass)(tarn_train *train, void *state, int64_t tracks);
  void (*after_pass)(tarn_train *train, void *state);
} tarn__feature;

enum { TARN__FEATURES_MOST = 16 };

// The features of a training run. Zero-initialise it; then no feature is enabled, and every call below does nothing.
typedef struct tarn__features {
  tarn_train *train;
  int count;
  const tarn__feature *in_use[TARN__FEATURES_MOST];
  void *states[TARN__FEATURES_MOST];
} tarn__features;

// --- for a description alone
tarn_status tarn__features_check_model(const tarn__model *model) TARN_CHECKED;
tarn_status tarn__features_check_data(const tarn_config *config, const tarn__shard *shard) TARN_CHECKED;
void tarn__features_plan(tarn_plan *plan, const tarn__plan_use *use);
size_t tarn__features_plan_ranks(const tarn_train *train);
// Whether any feature needs all gradients of an update at once.
bool tarn__features_need_gradients(const tarn_config *config);
// Whether a feature replaces the updates; and if so, after an update of `train`, whether training is over.
bool tarn__features_update(const tarn_config *config);
bool tarn__features_over(const tarn_train *train, tarn_train_end *end);

// --- for a training run: the hooks of the same names, of all enabled features
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

// The state of an enabled feature by name, for tests; NULL: not enabled.
void *tarn__features_state(const tarn__features *features, const char *name);

#endif

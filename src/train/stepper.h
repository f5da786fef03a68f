// Computes batches: builds the graph of a batch, plans it, and runs it in one workspace that is taken once.
#ifndef TARN_TRAIN_STEPPER_H
#define TARN_TRAIN_STEPPER_H

#include "base/energy.h"
#include "data/batch.h"
#include "model/model.h"
#include "train/feature.h"

// Bounds of the batches to come.
typedef struct tarn__stepper_bounds {
  int64_t source_rows, target_rows, sentences, longest_source, longest_target;
} tarn__stepper_bounds;

// Zero-initialise or open.
typedef struct tarn__stepper {
  const tarn__model *model;
  tarn__graph graph;
  void *workspace;  // of the model's device, as all that kernels read
  size_t workspace_bytes;
  tarn__host_room states;          // what the caller reads of the last run besides results
  const tarn__features *features;  // what shortens its graphs
  double grad_scale;               // 1 / target tokens of the whole update; set it before computing gradients
  double smoothing;
  const struct tarn__adam_factors *factors;  // of a model that updates at once; set it before training
  struct tarn__step_numbers *numbers;        // of the device: where training adds what it is not asked to return
  int64_t update;  // number of the optimiser step, from 1, that training steps belong to; 0: none
  tarn__exec exec;
  // Is told of the graphs that training steps run, before they do and after each node (graph/run_telling.h). Set it
  // before training; NULL: nobody is.
  void *follower;
  tarn_status (*follow)(void *follower, const tarn__graph *graph);
  tarn_status (*followed)(void *follower, size_t nodes);
  // Sums of what training steps and passes over the data have run (graph/graph_work.h); the caller sets them back.
  double operations, moved_bytes;
  tarn__energy *energy;          // watched wherever a graph runs; set it after open; NULL: nothing
  struct tarn_profile *profile;  // measures training, not evaluation; set it after open; NULL: nobody
} tarn__stepper;

// Takes memory for training on batches within `train` and evaluating batches within `valid` (NULL: none). The model
// must be allocated. The features, which are open, must outlive it.
tarn_status tarn__stepper_open(tarn__stepper *stepper, const tarn__model *model, const tarn__stepper_bounds *train,
                               const tarn__stepper_bounds *valid, const tarn__features *features, int threads,
                               uint64_t seed) TARN_CHECKED;
void tarn__stepper_close(tarn__stepper *stepper);

// Sums over the predictions of a batch: of the loss, and of the measure that the task watches.
typedef struct tarn__stepper_loss {
  double loss, watched;
  const void *answers;  // of an evaluation, for tarn__task.tally, valid until the next run; NULL: there are none
  size_t answer_bytes;
} tarn__stepper_loss;

// Adds the gradients of one batch; `number` is the counter of all that is random in a batch. With `loss` NULL its loss
// is added to stepper->numbers, and the host need not wait for it.
tarn_status tarn__stepper_train(tarn__stepper *stepper, tarn__stepper_loss *loss, const tarn__batch *batch,
                                int64_t number) TARN_CHECKED;
// The loss alone, without dropout.
tarn_status tarn__stepper_evaluate(tarn__stepper *stepper, tarn__stepper_loss *loss,
                                   const tarn__batch *batch) TARN_CHECKED;
// What the output layer of a language model reads of the rows of a batch, without dropout: *rows [target_rows, d_model]
// in the model's precision and the memory of its device, valid until the next call.
tarn_status tarn__stepper_states(tarn__stepper *stepper, const void **rows, const tarn__batch *batch) TARN_CHECKED;
// To be called while the largest batch is planned (tarn__feature.plan_graph): plans the graph of the frozen bottom too.
tarn_status tarn__stepper_plan_bottom(tarn__stepper *stepper, const tarn__packed *source) TARN_CHECKED;
// Outputs of the frozen bottom for source sentences: *rows [source->rows, d_model] in the model's precision, valid
// until the next call. At most as many rows as a training batch may have.
tarn_status tarn__stepper_bottom(tarn__stepper *stepper, const void **rows, const tarn__packed *source) TARN_CHECKED;

#endif

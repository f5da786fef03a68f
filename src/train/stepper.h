// Computes batches: builds the graph of a batch, plans it, and runs it in one workspace that is allocated once.
#ifndef TARN_TRAIN_STEPPER_H
#define TARN_TRAIN_STEPPER_H

#include "base/energy.h"
#include "data/batch.h"
#include "model/model.h"
#include "train/feature.h"

// Bounds on future batches.
typedef struct tarn__stepper_bounds {
  int64_t source_rows, target_rows, sentences, longest_source, longest_target;
} tarn__stepper_bounds;

// Zero-initialise or open.
typedef struct tarn__stepper {
  const tarn__model *model;
  tarn__graph graph;
  void *workspace;  // on the model's device, like all memory that kernels read
  size_t workspace_bytes;
  size_t input_bytes;              // of the largest batch, which is sent while the one before is computed
  tarn__host_room states;          // data of the last run that the caller reads in addition to results
  const tarn__features *features;  // which shorten its graphs
  double grad_scale;               // 1 / target tokens of the whole update; set it before computing gradients
  double smoothing;
  const struct tarn__adam_factors *factors;  // for a model that updates in the backward pass; set it before training
  struct tarn__step_numbers *numbers;        // on the device: training adds losses that it does not return
  int64_t update;                            // number of the optimiser step, from 1, for training steps; 0: none
  tarn__exec exec;
  // Notified of the graphs of training steps, before they run and after each node (graph/run_telling.h). Set it before
  // training; NULL: no notification.
  void *follower;
  tarn_status (*follow)(void *follower, const tarn__graph *graph);
  tarn_status (*followed)(void *follower, size_t nodes);
  // Work of training steps and passes over the data so far (tarn__graph_operations(), tarn__exec); reset by the caller.
  double operations, moved_bytes;
  tarn__energy *energy;          // sampled whenever a graph runs; set it after open; NULL: none
  struct tarn_profile *profile;  // measures training, not evaluation; set it after open; NULL: none
} tarn__stepper;

// Allocates memory for training on batches within `train` and evaluating batches within `valid` (NULL: none). The model
// must be allocated. The features must be open and outlive the stepper.
tarn_status tarn__stepper_open(tarn__stepper *stepper, const tarn__model *model, const tarn__stepper_bounds *train,
                               const tarn__stepper_bounds *valid, const tarn__features *features, int threads,
                               uint64_t seed) TARN_CHECKED;
void tarn__stepper_close(tarn__stepper *stepper);

// Sums over the predictions of a batch: the loss, and the measure that the task watches.
typedef struct tarn__stepper_loss {
  double loss, watched;
  const void *answers;  // of an evaluation, for tarn__task.tally, valid until the next run; NULL: none
  size_t answer_bytes;
} tarn__stepper_loss;

// Adds the gradients of one batch; `number` is the counter for everything random in the batch. With `loss` NULL the
// loss is added to stepper->numbers, and the host need not wait for it.
tarn_status tarn__stepper_train(tarn__stepper *stepper, tarn__stepper_loss *loss, const tarn__batch *batch,
                                int64_t number) TARN_CHECKED;
// Computes the loss alone, without dropout.
tarn_status tarn__stepper_evaluate(tarn__stepper *stepper, tarn__stepper_loss *loss,
                                   const tarn__batch *batch) TARN_CHECKED;
// Computes the input of a language model's output layer for the rows of a batch, without dropout: *rows
// [target_rows, d_model] in the model's precision and its device's memory, valid until the next call.
tarn_status tarn__stepper_states(tarn__stepper *stepper, const void **rows, const tarn__batch *batch) TARN_CHECKED;
// For use in tarn__feature.plan_graph, while the largest batch is planned: also plans the graph of the frozen bottom.
tarn_status tarn__stepper_plan_bottom(tarn__stepper *stepper, const tarn__packed *source) TARN_CHECKED;
// Computes the outputs of the frozen bottom for source sentences: *rows [source->rows, d_model] in the model's
// precision, valid until the next call. The number of rows must not exceed that of the largest training batch.
tarn_status tarn__stepper_bottom(tarn__stepper *stepper, const void **rows, const tarn__packed *source) TARN_CHECKED;

#endif

#include "train/stepper.h"

#include <string.h>

#include "base/memory.h"
#include "device/step_numbers.h"
#include "graph/graph_work.h"
#include "graph/profile.h"
#include "graph/run_telling.h"
#include "graph/update.h"

// Builds and plans the graph of a batch. With `offsets` and ids NULL it is only planned.
static tarn_status build(tarn__stepper *s, const tarn__batch *batch, const tarn__model_shortcuts *shortcuts,
                         bool training, tarn__tensor **loss, tarn__tensor **answers) {
  tarn__model_begin(s->model, &s->graph, training, s->exec.threads);
  s->graph.update = s->update;
  s->graph.ahead = training;  // nothing is read of the batch before
  *loss = tarn__model_build_loss(s->model, &s->graph, batch, shortcuts, s->smoothing, s->grad_scale, answers);
  if (training) tarn__model_differentiate(s->model, &s->graph, *loss);
  return tarn__graph_plan(&s->graph);
}

// Builds and plans the graph of the frozen bottom alone.
static tarn_status build_bottom(tarn__stepper *s, const tarn__packed *source, tarn__tensor **rows) {
  tarn__model_begin(s->model, &s->graph, false, s->exec.threads);
  *rows = tarn__model_build_bottom(s->model, &s->graph, source);
  return tarn__graph_plan(&s->graph);
}

// Grows the workspace to the planned graph.
static void widen(tarn__stepper *s) {
  if (s->graph.workspace_bytes > s->workspace_bytes) s->workspace_bytes = s->graph.workspace_bytes;
  if (s->graph.ahead && s->graph.input_bytes > s->input_bytes) s->input_bytes = s->graph.input_bytes;
}

// Plans the largest possible batch. Work that depends on the division of rows into sentences is planned for sentences
// of equal length.
static tarn_status plan_largest(tarn__stepper *s, const tarn__stepper_bounds *bounds, int32_t *offsets, bool training) {
  int32_t *source_offsets = offsets;
  int32_t *target_offsets = offsets + bounds->sentences + 1;
  for (int64_t i = 0; i <= bounds->sentences; i++) {
    source_offsets[i] = (int32_t)(bounds->source_rows * i / bounds->sentences);
    target_offsets[i] = (int32_t)(bounds->target_rows * i / bounds->sentences);
  }
  tarn__batch largest = {.source = {.sentences = bounds->sentences,
                                    .rows = bounds->source_rows,
                                    .longest = bounds->longest_source,
                                    .offsets = source_offsets},
                         .target = {.sentences = bounds->sentences,
                                    .rows = bounds->target_rows,
                                    .longest = bounds->longest_target,
                                    .offsets = target_offsets}};
  tarn__task_largest(&largest, s->model->config);
  tarn__model_shortcuts shortcuts = {0};
  tarn__tensor *result, *answers;
  const tarn__step_kind kind = training ? TARN__STEP_TRAIN : TARN__STEP_EVALUATE;
  TARN_TRY(tarn__features_plan_graph(s->features, s, &largest, kind, &shortcuts));
  // The first update computes all the true backward passes that later ones skip.
  for (s->update = 0; s->update <= (training && tarn__model_refreshes(s->model) ? 1 : 0); s->update++) {
    TARN_TRY(build(s, &largest, &shortcuts, training, &result, training ? NULL : &answers));
    widen(s);
  }
  s->update = 0;
  return TARN_STATUS_OK;
}

static tarn_status plan_bounds(tarn__stepper *s, const tarn__stepper_bounds *bounds, bool training) {
  void *offsets;
  TARN_TRY(tarn__alloc(&offsets, TARN__MEMORY_OTHER, 2 * ((size_t)bounds->sentences + 1), sizeof(int32_t)));
  tarn_status status = plan_largest(s, bounds, offsets, training);
  tarn__free(offsets);
  return status;
}

static tarn_status take_memory(tarn__stepper *s, const tarn__stepper_bounds *train, const tarn__stepper_bounds *valid) {
  TARN_TRY(plan_bounds(s, train, true));
  if (valid) TARN_TRY(plan_bounds(s, valid, false));
  if (s->input_bytes > 0) TARN_TRY(tarn__inlet_reserve(&s->graph.inlet, s->model->device, s->input_bytes));
  return tarn__device_allocate(s->model->device, &s->workspace, TARN__MEMORY_ACTIVATION, s->workspace_bytes, 1);
}

tarn_status tarn__stepper_open(tarn__stepper *stepper, const tarn__model *model, const tarn__stepper_bounds *train,
                               const tarn__stepper_bounds *valid, const tarn__features *features, int threads,
                               uint64_t seed) {
  *stepper = (tarn__stepper){
      .model = model, .features = features, .exec = {.threads = threads, .seed = seed}, .grad_scale = 1.0};
  stepper->smoothing = model->config->train.label_smoothing;
  tarn_status status = take_memory(stepper, train, valid);
  if (status != TARN_STATUS_OK) tarn__stepper_close(stepper);
  return status;
}

void tarn__stepper_close(tarn__stepper *stepper) {
  tarn__graph_close(&stepper->graph);
  if (stepper->workspace) tarn__device_free(stepper->model->device, stepper->workspace);
  tarn__host_room_close(&stepper->states);
  *stepper = (tarn__stepper){0};
}

// The planner is greedy, so a smaller batch could in principle need slightly more than the largest one; and the number
// of words per band (task/bands.h) is known only for the actual batch. The contents are discarded, so that the two
// workspaces never coexist.
static tarn_status make_room(tarn__stepper *s) {
  if (s->graph.workspace_bytes <= s->workspace_bytes) return TARN_STATUS_OK;
  if (s->workspace) tarn__device_free(s->model->device, s->workspace);
  s->workspace = NULL;
  s->workspace_bytes = 0;
  TARN_TRY(
      tarn__device_allocate(s->model->device, &s->workspace, TARN__MEMORY_ACTIVATION, s->graph.workspace_bytes, 1));
  s->workspace_bytes = s->graph.workspace_bytes;
  return TARN_STATUS_OK;
}

// Counts the work of the graph that has run.
static void count_work(tarn__stepper *s) {
  s->operations += tarn__graph_operations(&s->graph);
  if (s->energy) tarn__energy_watch(s->energy);
}

// Runs the planned and bound graph. Planned gradients disappear with the workspace, even after a failure.
static tarn_status run_graph(tarn__stepper *s, bool training, double begin) {
  s->exec.update = training ? s->factors : NULL;
  s->exec.squares = training && s->numbers ? &s->numbers->squares : NULL;
  s->exec.moved_bytes = training ? &s->moved_bytes : NULL;
  tarn_status status = tarn__profile_work(s->exec.profile, "building and planning graphs", begin);
  const bool follows = training && s->follower;
  if (status == TARN_STATUS_OK && follows) status = s->follow(s->follower, &s->graph);
  if (status == TARN_STATUS_OK)
    status = tarn__graph_run_telling(&s->graph, &s->exec, follows ? s->followed : NULL, s->follower);
  s->exec.update = NULL;
  for (size_t i = 0; i < s->model->param_count; i++)
    if (s->model->params[i]->training.planned) s->model->params[i]->training.grad = NULL;
  if (training && status == TARN_STATUS_OK) count_work(s);
  return status;
}

// Reads the results of the graph to the host.
static tarn_status read_loss(tarn__stepper *s, tarn__stepper_loss *loss, const tarn__tensor *result,
                             const tarn__tensor *answers) {
  void *values;
  TARN_TRY(tarn__graph_result(&s->graph, &values, result));
  const double *sums = values;
  *loss = (tarn__stepper_loss){.loss = sums[0], .watched = sums[1]};
  if (answers) TARN_TRY(tarn__graph_result(&s->graph, &values, answers));
  if (answers) loss->answers = values;
  loss->answer_bytes = (size_t)tarn__tensor_bytes(answers);
  return TARN_STATUS_OK;
}

static tarn_status compute(tarn__stepper *s, tarn__stepper_loss *loss, const tarn__batch *batch, bool training) {
  double begin = tarn__profile_clock(s->exec.profile);
  tarn__model_shortcuts shortcuts = {0};
  const tarn__step_kind kind = training ? TARN__STEP_TRAIN : TARN__STEP_EVALUATE;
  TARN_TRY(tarn__features_shorten(s->features, batch, kind, &shortcuts));
  tarn__tensor *result, *answers = NULL;
  TARN_TRY(build(s, batch, &shortcuts, training, &result, training ? NULL : &answers));
  TARN_TRY(make_room(s));
  tarn__graph_bind(&s->graph, s->workspace);
  TARN_TRY(run_graph(s, training, begin));
  TARN_TRY(tarn__features_ran(s->features, &s->graph, kind));
  if (loss) return read_loss(s, loss, result, answers);
  const tarn__device *device = s->model->device;
  return device->type->add_loss(device, s->numbers, result->data);
}

tarn_status tarn__stepper_train(tarn__stepper *stepper, tarn__stepper_loss *loss, const tarn__batch *batch,
                                int64_t number) {
  stepper->exec.step = (uint32_t)number;
  stepper->exec.profile = stepper->profile;
  return compute(stepper, loss, batch, true);
}

tarn_status tarn__stepper_evaluate(tarn__stepper *stepper, tarn__stepper_loss *loss, const tarn__batch *batch) {
  stepper->exec.profile = NULL;
  return compute(stepper, loss, batch, false);
}

// Runs the planned graph.
static tarn_status run_planned(tarn__stepper *s) {
  TARN_TRY(make_room(s));
  tarn__graph_bind(&s->graph, s->workspace);
  TARN_TRY(tarn__graph_run(&s->graph, &s->exec));
  count_work(s);
  return TARN_STATUS_OK;
}

tarn_status tarn__stepper_states(tarn__stepper *stepper, const void **rows, const tarn__batch *batch) {
  stepper->exec.profile = stepper->profile;
  tarn__model_begin(stepper->model, &stepper->graph, false, stepper->exec.threads);
  tarn__model_shortcuts shortcuts = {0};
  TARN_TRY(tarn__features_shorten(stepper->features, batch, TARN__STEP_STATES, &shortcuts));
  tarn__tensor *result = tarn__model_build_states(stepper->model, &stepper->graph, &batch->target, &shortcuts);
  TARN_TRY(tarn__graph_plan(&stepper->graph));
  TARN_TRY(run_planned(stepper));
  *rows = result->data;
  return TARN_STATUS_OK;
}

tarn_status tarn__stepper_plan_bottom(tarn__stepper *stepper, const tarn__packed *source) {
  tarn__tensor *rows;
  TARN_TRY(build_bottom(stepper, source, &rows));
  widen(stepper);
  return TARN_STATUS_OK;
}

tarn_status tarn__stepper_bottom(tarn__stepper *stepper, const void **rows, const tarn__packed *source) {
  tarn__tensor *result;
  stepper->exec.profile = NULL;
  TARN_TRY(build_bottom(stepper, source, &result));
  TARN_TRY(run_planned(stepper));
  void *values;
  TARN_TRY(tarn__graph_read(&stepper->graph, &values, result, &stepper->states));
  *rows = values;
  return TARN_STATUS_OK;
}

// The additions of backskipping to an optimiser step: the schedule of refreshes, the predictors' own optimiser, the
// log. See parts/backskip.h.
#include <math.h>

#include "parts/backskip.h"
#include "train/feature.h"
#include "train/trainer.h"

enum { STACKS = 2 };

static const tarn__model_stack *stack_at(const tarn_train *t, int index) {
  return index == 0 ? &t->model->encoder : &t->model->decoder;
}

static bool wanted(const tarn_config *config) {
  for (int32_t i = 0; i < config->kind_count; i++)
    if (config->kinds[i].backskip.method != TARN_BACKSKIP_NONE) return true;
  return false;
}

static tarn_status before_update(tarn_train *t, void *state, int64_t update) {
  (void)state, (void)update;
  for (size_t i = 0; i < t->model->helper_count; i++) t->model->helpers[i]->training.grad_written = false;
  for (int s = 0; s < STACKS; s++)
    for (int i = 0; i < stack_at(t, s)->count; i++) {
      tarn__stand_in_sums *sums = stack_at(t, s)->layers[i].sums;
      if (sums) *sums = (tarn__stand_in_sums){0};
    }
  return TARN_STATUS_OK;
}

static tarn_status ran(tarn_train *t, void *state, const tarn__graph *graph, tarn__step_kind kind) {
  (void)t, (void)state;
  return kind == TARN__STEP_TRAIN ? tarn__backskip_measured(graph) : TARN_STATUS_OK;
}

// Collects the measurements of a refresh from all ranks.
static tarn_status after_gradients(tarn_train *t, void *state) {
  (void)state;
  if (t->comm->size == 1) return TARN_STATUS_OK;
  for (int s = 0; s < STACKS; s++)
    for (int i = 0; i < stack_at(t, s)->count; i++) {
      const tarn__model_layer *layer = &stack_at(t, s)->layers[i];
      if (!layer->sums || !tarn__backskip_refreshes(&layer->weights->backskip->how, t->stepper.update)) continue;
      double sums[] = {layer->sums->dot, layer->sums->approximation, layer->sums->truth};
      TARN_TRY(tarn__comm_sum_doubles(t->comm, sums, sizeof sums / sizeof *sums));
      *layer->sums = (tarn__stand_in_sums){.dot = sums[0], .approximation = sums[1], .truth = sums[2]};
    }
  return TARN_STATUS_OK;
}

// Updates the predictor of one set of weights; shared layers occur once. Adam with a fixed learning rate of 0.001,
// beta1 0.9, beta2 0.98; its step count is the number of refreshes of the kind.
static tarn_status optimise_set(const tarn_train *t, const tarn__backskip_weights *w, int64_t update) {
  if (w->how.method != TARN_BACKSKIP_PREDICTOR || !tarn__backskip_refreshes(&w->how, update)) return TARN_STATUS_OK;
  tarn__param *params[] = {w->down, w->input, w->input_bias, w->output, w->kernel, w->head};
  const tarn__adam_options options = {
      .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8, .seed = (uint64_t)t->config->train.seed};
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    if (params[i]->training.part) params[i] = params[i]->training.part;
  int64_t step = (update - 1) / w->how.refresh + 1;
  tarn__param_table table = {.params = params, .count = sizeof params / sizeof *params};
  const tarn_status status =
      tarn__adam_step(t->model->device, &table, &options, step, 1.0, t->numbers.there, t->threads);
  tarn__param_table_close(t->model->device, &table);
  return status;
}

static tarn_status optimise(tarn_train *t, void *state, int64_t update) {
  (void)state;
  for (int s = 0; s < STACKS; s++) {
    const tarn__model_stack *stack = stack_at(t, s);
    for (int i = 0; i < stack->count; i++) {
      const tarn__layer_weights *weights = stack->layers[i].weights;
      bool first = true;
      for (int k = 0; k < i; k++) first = first && stack->layers[k].weights != weights;
      if (weights->backskip && first) TARN_TRY(optimise_set(t, weights->backskip, update));
    }
  }
  return TARN_STATUS_OK;
}

// Layers that did not run or whose gradient was zero have no cosine.
static json_t *cosines(const tarn_train *t) {
  json_t *object = json_object();
  bool failed = !object;
  for (int s = 0; s < STACKS; s++)
    for (int i = 0; i < stack_at(t, s)->count; i++) {
      const tarn__model_layer *layer = &stack_at(t, s)->layers[i];
      const tarn__stand_in_sums *sums = layer->sums;
      double norms = sums ? sqrt(sums->approximation) * sqrt(sums->truth) : 0.0;
      if (norms > 0.0 && isfinite(norms))
        failed |= json_object_set_new(object, layer->label, json_real(sums->dot / norms)) != 0;
    }
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

// Logs the cosines of the last update, if it was a refresh: {"kind": "backskip", "step", "time", "cosine": {label:
// number}}.
static tarn_status told(tarn_train *t, void *state) {
  (void)state;
  json_t *cosine = cosines(t);
  TARN_REQUIRE(cosine, MEMORY, "out of memory: a line of %s", t->session.log.path);
  if (json_object_size(cosine) == 0) {
    json_decref(cosine);
    return TARN_STATUS_OK;
  }
  json_t *record = json_pack("{s:s, s:I, s:f, s:o}", "kind", "backskip", "step", (json_int_t)t->progress.update, "time",
                             t->progress.seconds, "cosine", cosine);
  return tarn__train_note(t, record, true, NULL);
}

extern const tarn__feature tarn__feature_backskip;
const tarn__feature tarn__feature_backskip = {.name = "backskip",
                                              .wanted = wanted,
                                              .needs_gradients = true,
                                              .before_update = before_update,
                                              .after_gradients = after_gradients,
                                              .optimise = optimise,
                                              .told = told,
                                              .ran = ran};

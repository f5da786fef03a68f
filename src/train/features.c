// The table of features, and the calls of their hooks.
#include <string.h>

#include "base/memory.h"
#include "train/feature.h"
#include "train/trainer.h"

extern const tarn__feature tarn__feature_autofreeze, tarn__feature_backskip, tarn__feature_carry, tarn__feature_experts,
    tarn__feature_freeze, tarn__feature_frozen_cache, tarn__feature_halting, tarn__feature_layerdrop,
    tarn__feature_redraw, tarn__feature_ridge;

// If two act at the same point, the upper one comes first.
static const tarn__feature *const FEATURES[] = {
    &tarn__feature_redraw,  &tarn__feature_backskip,  &tarn__feature_carry,        &tarn__feature_experts,
    &tarn__feature_halting, &tarn__feature_layerdrop, &tarn__feature_frozen_cache, &tarn__feature_autofreeze,
    &tarn__feature_freeze,  &tarn__feature_ridge,
};
enum { COUNT = sizeof FEATURES / sizeof *FEATURES };
_Static_assert((int)COUNT <= (int)TARN__FEATURES_MOST, "room for all features");

static bool is_wanted(const tarn__feature *feature, const tarn_config *config) {
  return !feature->wanted || feature->wanted(config);
}

// --- for a description alone

tarn_status tarn__features_check_model(const tarn__model *model) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->check_model && is_wanted(FEATURES[i], model->config)) TARN_TRY(FEATURES[i]->check_model(model));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_check_data(const tarn_config *config, const tarn__shard *shard) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->check_data && is_wanted(FEATURES[i], config)) TARN_TRY(FEATURES[i]->check_data(config, shard));
  return TARN_STATUS_OK;
}

void tarn__features_plan(tarn_plan *plan, const tarn__plan_use *use) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->plan && is_wanted(FEATURES[i], use->model->config)) FEATURES[i]->plan(plan, use);
}

size_t tarn__features_plan_ranks(const tarn_train *train) {
  size_t bytes = 0;
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->plan_ranks && is_wanted(FEATURES[i], train->config)) bytes += FEATURES[i]->plan_ranks(train);
  return bytes;
}

bool tarn__features_need_gradients(const tarn_config *config) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->needs_gradients && is_wanted(FEATURES[i], config)) return true;
  return false;
}

bool tarn__features_update(const tarn_config *config) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->update && is_wanted(FEATURES[i], config)) return true;
  return false;
}

bool tarn__features_over(const tarn_train *train, tarn_train_end *end) {
  for (int i = 0; i < COUNT; i++)
    if (FEATURES[i]->over && is_wanted(FEATURES[i], train->config)) return FEATURES[i]->over(train, end);
  return false;
}

// --- for a training run

tarn_status tarn__features_open(tarn__features *f, tarn_train *train) {
  f->train = train;
  for (int i = 0; i < COUNT; i++) {
    if (!is_wanted(FEATURES[i], train->config)) continue;
    TARN_TRY(tarn__alloc(&f->states[f->count], TARN__MEMORY_OTHER, 1, FEATURES[i]->state_bytes + 1));
    memset(f->states[f->count], 0, FEATURES[i]->state_bytes + 1);
    f->in_use[f->count++] = FEATURES[i];
    if (FEATURES[i]->open) TARN_TRY(FEATURES[i]->open(train, f->states[f->count - 1]));
  }
  return TARN_STATUS_OK;
}

void tarn__features_close(tarn__features *f) {
  for (int i = 0; i < f->count; i++) {
    if (f->in_use[i]->close) f->in_use[i]->close(f->train, f->states[i]);
    tarn__free(f->states[i]);
  }
  *f = (tarn__features){0};
}

// Calls a hook, with arguments in parentheses, of all features that have it; stops at the first failure.
#define TRY_EACH(hook, arguments)    \
  for (int i = 0; i < f->count; i++) \
    if (f->in_use[i]->hook) TARN_TRY(f->in_use[i]->hook arguments)
#define CALL_EACH(hook, arguments)   \
  for (int i = 0; i < f->count; i++) \
    if (f->in_use[i]->hook) f->in_use[i]->hook arguments

tarn_status tarn__features_load(const tarn__features *f, const tarn__checkpoint_file *file) {
  TRY_EACH(load, (f->train, f->states[i], file));
  return TARN_STATUS_OK;
}

void tarn__features_save(const tarn__features *f, tarn__checkpoint_extra *extra) {
  CALL_EACH(save, (f->train, f->states[i], extra));
}

tarn_status tarn__features_begin(const tarn__features *f, bool logged) {
  TRY_EACH(begin, (f->train, f->states[i], logged));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_ready(const tarn__features *f) {
  TRY_EACH(ready, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_check_files(const tarn__features *f) {
  TRY_EACH(check_files, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_make_update(const tarn__features *f, tarn__train_update_result *result) {
  TRY_EACH(update, (f->train, f->states[i], result));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_before_update(const tarn__features *f, int64_t update) {
  TRY_EACH(before_update, (f->train, f->states[i], update));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_before_batches(const tarn__features *f, bool first) {
  TRY_EACH(before_batches, (f->train, f->states[i], first));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_after_gradients(const tarn__features *f) {
  TRY_EACH(after_gradients, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_optimise(const tarn__features *f, int64_t update) {
  TRY_EACH(optimise, (f->train, f->states[i], update));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_optimised(const tarn__features *f) {
  TRY_EACH(optimised, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

void tarn__features_advance(const tarn__features *f) { CALL_EACH(advance, (f->train, f->states[i])); }

tarn_status tarn__features_told(const tarn__features *f) {
  TRY_EACH(told, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_after_update(const tarn__features *f) {
  TRY_EACH(after_update, (f->train, f->states[i]));
  return TARN_STATUS_OK;
}

bool tarn__features_log(const tarn__features *f, json_t *record) {
  for (int i = 0; i < f->count; i++)
    if (f->in_use[i]->log && !f->in_use[i]->log(f->train, f->states[i], record)) return false;
  return true;
}

void tarn__features_logged(const tarn__features *f) { CALL_EACH(logged, (f->train, f->states[i])); }

tarn_status tarn__features_plan_graph(const tarn__features *f, tarn__stepper *stepper, const tarn__batch *largest,
                                      tarn__step_kind kind, tarn__model_shortcuts *shortcuts) {
  TRY_EACH(plan_graph, (f->train, f->states[i], stepper, largest, kind, shortcuts));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_shorten(const tarn__features *f, const tarn__batch *batch, tarn__step_kind kind,
                                   tarn__model_shortcuts *shortcuts) {
  TRY_EACH(shorten, (f->train, f->states[i], batch, kind, shortcuts));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_ran(const tarn__features *f, const tarn__graph *graph, tarn__step_kind kind) {
  TRY_EACH(ran, (f->train, f->states[i], graph, kind));
  return TARN_STATUS_OK;
}

tarn_status tarn__features_before_pass(const tarn__features *f, int64_t tracks) {
  TRY_EACH(before_pass, (f->train, f->states[i], tracks));
  return TARN_STATUS_OK;
}

void tarn__features_after_pass(const tarn__features *f) { CALL_EACH(after_pass, (f->train, f->states[i])); }

void *tarn__features_state(const tarn__features *f, const char *name) {
  for (int i = 0; i < f->count; i++)
    if (strcmp(f->in_use[i]->name, name) == 0) return f->states[i];
  return NULL;
}

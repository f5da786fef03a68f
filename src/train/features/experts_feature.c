// The number of experts without a token since the last line of the log ("unused_experts").
#include "store/checkpoint_keys.h"
#include "train/feature.h"
#include "train/features/expert_use.h"
#include "train/trainer.h"

static tarn_status open_state(tarn_train *t, void *state) { return tarn__expert_use_open(state, t->model); }

static void close_state(tarn_train *t, void *state) {
  (void)t;
  tarn__expert_use_close(state);
}

static tarn_status load(tarn_train *t, void *state, const tarn__checkpoint_file *file) {
  (void)t;
  return tarn__expert_use_load(state, tarn__safetensors_text(&file->tensors, TARN__KEY_EXPERTS), file->tensors.path);
}

static void save(tarn_train *t, void *state, tarn__checkpoint_extra *extra) {
  const tarn__expert_use *use = state;
  (void)t;
  extra->experts = use->routers > 0 ? use->marks : NULL;
}

static tarn_status ran(tarn_train *t, void *state, const tarn__graph *graph, tarn__step_kind kind) {
  (void)t;
  return kind == TARN__STEP_TRAIN ? tarn__expert_use_add(state, graph) : TARN_STATUS_OK;
}

static tarn_status after_gradients(tarn_train *t, void *state) { return tarn__expert_use_share(state, t->comm); }

static bool add_to_log(const tarn_train *t, const void *state, json_t *record) {
  const int64_t unused = tarn__expert_use_unused(state);
  (void)t;
  return unused < 0 || json_object_set_new(record, "unused_experts", json_integer((json_int_t)unused)) == 0;
}

static void logged(tarn_train *t, void *state) {
  (void)t;
  tarn__expert_use_clear(state);
}

extern const tarn__feature tarn__feature_experts;
const tarn__feature tarn__feature_experts = {.name = "experts",
                                             .state_bytes = sizeof(tarn__expert_use),
                                             .open = open_state,
                                             .close = close_state,
                                             .load = load,
                                             .save = save,
                                             .after_gradients = after_gradients,
                                             .log = add_to_log,
                                             .logged = logged,
                                             .ran = ran};

// States carried from window to window of a text (train.carry_state): those of training, and separate ones for each
// evaluation.
#include "train/feature.h"
#include "train/features/carried.h"
#include "train/trainer.h"
#include "train/validator.h"

typedef struct carry {
  tarn__carried states;
  // For an evaluation, on one rank.
  tarn__carried pass;
  tarn__comm alone;
  bool in_pass, first;          // the next batch of the evaluation is its first
  tarn__model_carried planned;  // for the largest batch
} carry;

static bool wanted(const tarn_config *config) { return config->train.carry_state; }

static tarn_status check_data(const tarn_config *config, const tarn__shard *shard) {
  (void)config;
  TARN_REQUIRE(shard->continues, DATA,
               "%s: its rows are no windows of one long text, which train.carry_state needs; run tarn prepare "
               "--stream, or leave that key out",
               shard->path);
  return TARN_STATUS_OK;
}

// The states of training, on one rank, and those for one set at a time.
static void plan(tarn_plan *out, const tarn__plan_use *use) {
  const tarn_config *config = use->model->config;
  size_t most = 0;
  if (use->batch->longest_target == 0) return;
  for (int32_t i = 0; i < use->set_count; i++) {
    if (use->sets[i].file_bytes == 0) continue;
    const size_t need = tarn__carried_bytes(use->model, tarn__validator_tracks(config, &use->sets[i]), 1, 1);
    if (need > most) most = need;
  }
  out->validation_bytes += most;
  const int64_t tracks = use->batch->target_rows / use->batch->longest_target;
  out->program_bytes += tarn__carried_bytes(use->model, tracks, config->train.accumulate, 1);
}

static size_t plan_ranks(const tarn_train *t) {
  const int64_t tracks = tarn__batcher_tracks(t->batcher), slots = t->config->train.accumulate;
  return tarn__carried_bytes(t->model, tracks, slots, t->comm->size) - tarn__carried_bytes(t->model, tracks, slots, 1);
}

static tarn_status open_state(tarn_train *t, void *state) {
  carry *c = state;
  c->alone = (tarn__comm){.kind = &tarn__comm_self, .size = 1};
  return tarn__carried_open(&c->states, t->model, t->comm, tarn__batcher_tracks(t->batcher),
                            t->config->train.accumulate);
}

static void close_state(tarn_train *t, void *state) {
  carry *c = state;
  (void)t;
  tarn__carried_close(&c->states);
  tarn__carried_close(&c->pass);
}

// An epoch starts without states.
static tarn_status load(tarn_train *t, void *state, const tarn__checkpoint_file *file) {
  carry *c = state;
  return t->progress.index > 0 ? tarn__carried_load(&c->states, &file->tensors) : TARN_STATUS_OK;
}

static void save(tarn_train *t, void *state, tarn__checkpoint_extra *extra) {
  carry *c = state;
  if (t->progress.index > 0) extra->states = tarn__carried_stored(&c->states, &extra->state_count);
}

static tarn_status before_batches(tarn_train *t, void *state, bool first) {
  carry *c = state;
  (void)t;
  return tarn__carried_begin(&c->states, first);
}

static tarn_status after_gradients(tarn_train *t, void *state) {
  carry *c = state;
  (void)t;
  return tarn__carried_share(&c->states);
}

static void advance(tarn_train *t, void *state) {
  carry *c = state;
  (void)t;
  tarn__carried_advance(&c->states);
}

static tarn_status plan_graph(tarn_train *t, void *state, tarn__stepper *stepper, const tarn__batch *largest,
                              tarn__step_kind kind, tarn__model_shortcuts *shortcuts) {
  carry *c = state;
  (void)t, (void)stepper, (void)kind;
  c->planned = (tarn__model_carried){.rows = largest->target.sentences};
  shortcuts->carried = &c->planned;
  return TARN_STATUS_OK;
}

static tarn_status shorten(tarn_train *t, void *state, const tarn__batch *batch, tarn__step_kind kind,
                           tarn__model_shortcuts *shortcuts) {
  carry *c = state;
  (void)batch;
  if (kind != TARN__STEP_EVALUATE) {
    shortcuts->carried = tarn__carried_at(&c->states, t->batch);
    return TARN_STATUS_OK;
  }
  if (!c->in_pass) return TARN_STATUS_OK;
  TARN_TRY(tarn__carried_begin(&c->pass, c->first));
  c->first = false;
  shortcuts->carried = tarn__carried_at(&c->pass, 0);
  return TARN_STATUS_OK;
}

static tarn_status ran(tarn_train *t, void *state, const tarn__graph *graph, tarn__step_kind kind) {
  carry *c = state;
  (void)t, (void)graph;
  if (kind == TARN__STEP_EVALUATE && c->in_pass) tarn__carried_advance(&c->pass);
  return TARN_STATUS_OK;
}

// Evaluation has its own states, so that those of training are preserved.
static tarn_status before_pass(tarn_train *t, void *state, int64_t tracks) {
  carry *c = state;
  TARN_TRY(tarn__carried_open(&c->pass, t->model, &c->alone, tracks, 1));
  c->in_pass = c->first = true;
  return TARN_STATUS_OK;
}

static void after_pass(tarn_train *t, void *state) {
  carry *c = state;
  (void)t;
  tarn__carried_close(&c->pass);
  c->in_pass = false;
}

extern const tarn__feature tarn__feature_carry;
const tarn__feature tarn__feature_carry = {.name = "carry",
                                           .state_bytes = sizeof(carry),
                                           .wanted = wanted,
                                           .check_data = check_data,
                                           .plan = plan,
                                           .plan_ranks = plan_ranks,
                                           .open = open_state,
                                           .close = close_state,
                                           .load = load,
                                           .save = save,
                                           .before_batches = before_batches,
                                           .after_gradients = after_gradients,
                                           .advance = advance,
                                           .plan_graph = plan_graph,
                                           .shorten = shorten,
                                           .ran = ran,
                                           .before_pass = before_pass,
                                           .after_pass = after_pass};

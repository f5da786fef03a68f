// Outputs of the frozen layers at the bottom of the encoder, computed once and read in training steps
// (train.cache_frozen).
#include <string.h>

#include "base/memory.h"
#include "train/feature.h"
#include "train/features/frozen_cache.h"
#include "train/features/frozen_pass.h"
#include "train/trainer.h"

typedef struct cached {
  tarn__frozen_cache cache;
  int32_t *ids;  // of the rows of a batch
  // If the device cannot read the cache's file: the rows of a batch, and a buffer to collect them in.
  tarn__param rows;
  tarn__host_room room;
} cached;

static bool wanted(const tarn_config *config) { return config->train.cache_frozen; }

static tarn_status open_state(tarn_train *t, void *state) {
  cached *c = state;
  const tarn__device *device = t->model->device;
  tarn__stepper_bounds bounds;
  void *memory;
  tarn__train_bounds(t, &bounds);
  TARN_TRY(tarn__frozen_cache_open(&c->cache, t->model, &t->shard));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)bounds.source_rows, sizeof(int32_t)));
  c->ids = memory;
  if (device->type->host_memory) return TARN_STATUS_OK;
  c->rows = c->cache.table;
  c->rows.rows = bounds.source_rows;
  return tarn__device_allocate(device, &c->rows.value, TARN__MEMORY_OTHER, (size_t)bounds.source_rows,
                               tarn__frozen_cache_row_bytes(&c->cache));
}

static void close_state(tarn_train *t, void *state) {
  cached *c = state;
  if (c->rows.value) tarn__device_free(t->model->device, c->rows.value);
  tarn__free(c->ids);
  tarn__host_room_close(&c->room);
  tarn__frozen_cache_close(&c->cache);
}

// Counts as training time. Stopping here loses only the cache. The next session will find the cache and not spend the
// time again, so the clock is saved at once: a kill must not erase it.
static tarn_status fill(tarn_train *t) {
  cached *c = tarn__features_state(&t->features, "frozen_cache");
  double begin = tarn__train_clock(t);
  bool computed;
  tarn__cost_begin(t);
  tarn_status status = tarn__frozen_pass(&t->stepper, &c->cache, &computed, t->dir.cache, &t->shard, t->stop);
  TARN_TRY(tarn__train_check_data(t));
  TARN_TRY(status);
  t->progress.seconds += tarn__train_clock(t) - begin;
  tarn__cost_end(t, &t->progress, true);
  return computed ? tarn__train_save(t, false) : TARN_STATUS_OK;
}

// Rank 0 fills it, and the others read the file.
static tarn_status ready(tarn_train *t, void *state) {
  cached *c = state;
  const char *why;
  TARN_TRY(tarn__train_lead(t, fill));
  if (t->comm->rank == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__frozen_cache_key(&c->cache, t->model, &t->shard));
  TARN_TRY(tarn__frozen_cache_read(&c->cache, t->dir.cache, &why));
  TARN_REQUIRE(!why, DATA, "%s does not serve, because %s", t->dir.cache, why);
  return TARN_STATUS_OK;
}

static tarn_status plan_graph(tarn_train *t, void *state, tarn__stepper *stepper, const tarn__batch *largest,
                              tarn__step_kind kind, tarn__model_shortcuts *shortcuts) {
  cached *c = state;
  (void)t;
  if (kind != TARN__STEP_TRAIN) return TARN_STATUS_OK;
  shortcuts->bottom = &c->cache.table;
  return tarn__stepper_plan_bottom(stepper, &largest->source);
}

static tarn_status shorten(tarn_train *t, void *state, const tarn__batch *batch, tarn__step_kind kind,
                           tarn__model_shortcuts *shortcuts) {
  cached *c = state;
  if (kind != TARN__STEP_TRAIN) return TARN_STATUS_OK;
  tarn__frozen_cache_ids(&c->cache, c->ids, batch);
  shortcuts->bottom = &c->cache.table;
  shortcuts->bottom_ids = c->ids;
  if (!c->rows.value) return TARN_STATUS_OK;
  const size_t row = tarn__frozen_cache_row_bytes(&c->cache), bytes = (size_t)batch->source.rows * row;
  TARN_TRY(tarn__grow(&c->room.memory, &c->room.capacity, bytes, 1));
  for (int64_t r = 0; r < batch->source.rows; r++) {
    memcpy((char *)c->room.memory + (size_t)r * row, (const char *)c->cache.table.value + (size_t)c->ids[r] * row, row);
    c->ids[r] = (int32_t)r;
  }
  shortcuts->bottom = &c->rows;
  return tarn__device_put(t->model->device, c->rows.value, c->room.memory, bytes);
}

static tarn_status ran(tarn_train *t, void *state, const tarn__graph *graph, tarn__step_kind kind) {
  cached *c = state;
  (void)t, (void)graph;
  if (kind == TARN__STEP_TRAIN) tarn__map_release(&c->cache.map);
  return TARN_STATUS_OK;
}

static tarn_status check_files(tarn_train *t, void *state) {
  cached *c = state;
  (void)t;
  return tarn__map_check(&c->cache.map);
}

extern const tarn__feature tarn__feature_frozen_cache;
const tarn__feature tarn__feature_frozen_cache = {.name = "frozen_cache",
                                                  .state_bytes = sizeof(cached),
                                                  .wanted = wanted,
                                                  .needs_gradients = true,
                                                  .open = open_state,
                                                  .close = close_state,
                                                  .ready = ready,
                                                  .check_files = check_files,
                                                  .plan_graph = plan_graph,
                                                  .shorten = shorten,
                                                  .ran = ran};

#include "train/features/carried.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/transfer.h"
#include "store/checkpoint_keys.h"

static int64_t width_of(const tarn__model *model, int layer) {
  return tarn__layer_state_width(model->decoder.layers[layer].weights, model->config->model.d_model);
}

// Bytes of a layer's states for one batch.
static size_t slot_bytes(const tarn__carried *c, int layer) {
  return (size_t)(c->tracks * width_of(c->model, layer)) * sizeof(float);
}

static size_t bytes_of(const tarn__model *model, int64_t tracks, int64_t slots) {
  int64_t width = 0;
  for (int i = 0; i < model->decoder.count; i++) width += width_of(model, i);
  return (size_t)(tracks * slots * width) * sizeof(float);
}

size_t tarn__carried_bytes(const tarn__model *model, int64_t tracks, int64_t slots, int ranks) {
  // Those of all ranks twice, and once more as gathered.
  return bytes_of(model, tracks, slots) * (size_t)(ranks > 1 ? 2 + 3 * ranks : 2);
}

static tarn_status take_memory(tarn__carried *c) {
  const tarn__device *device = c->model->device;
  void *memory;
  TARN_TRY(tarn__device_allocate(device, &memory, TARN__MEMORY_ACTIVATION, c->bytes, 1));
  c->start = memory;
  TARN_TRY(tarn__device_allocate(device, &memory, TARN__MEMORY_ACTIVATION, c->bytes, 1));
  c->end = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, TARN_CONFIG_LAYERS, sizeof *c->stored));
  c->stored = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, TARN_CONFIG_LAYERS, sizeof *c->names));
  c->names = memory;
  if (c->comm->size == 1) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->comm->size, c->bytes));
  c->all = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->comm->size, c->bytes));
  c->next = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->comm->size, c->bytes));
  c->gathered = memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__carried_open(tarn__carried *carried, const tarn__model *model, tarn__comm *comm, int64_t tracks,
                               int64_t slots) {
  *carried = (tarn__carried){.model = model, .comm = comm, .tracks = tracks, .slots = slots};
  carried->bytes = bytes_of(model, tracks, slots);
  carried->now = (tarn__model_carried){.rows = tracks, .start = carried->starts, .end = carried->ends};
  const tarn_status status = take_memory(carried);
  if (status != TARN_STATUS_OK) tarn__carried_close(carried);
  return status;
}

void tarn__carried_close(tarn__carried *carried) {
  if (carried->start) tarn__device_free(carried->model->device, carried->start);
  if (carried->end) tarn__device_free(carried->model->device, carried->end);
  tarn__free(carried->all);
  tarn__free(carried->next);
  tarn__free(carried->gathered);
  tarn__free(carried->stored);
  tarn__free(carried->names);
  *carried = (tarn__carried){0};
}

tarn_status tarn__carried_begin(tarn__carried *carried, bool epoch_begins) {
  if (!epoch_begins) return TARN_STATUS_OK;
  return tarn__device_fill(carried->model->device, carried->start, 0, carried->bytes);
}

const tarn__model_carried *tarn__carried_at(tarn__carried *c, int64_t number) {
  const int64_t slot = number / c->comm->size;
  size_t at = 0;
  for (int i = 0; i < c->model->decoder.count; i++) {
    const size_t bytes = slot_bytes(c, i);
    c->starts[i] = c->start + at + (size_t)slot * bytes;
    c->ends[i] = c->end + at + (size_t)slot * bytes;
    at += (size_t)c->slots * bytes;
  }
  return &c->now;
}

// Copies the slots of a rank to or from their places among those of all ranks.
static void deal(const tarn__carried *c, char *all, char *own, int rank, bool out) {
  const size_t ranks = (size_t)c->comm->size;
  size_t at = 0;
  for (int i = 0; i < c->model->decoder.count; i++) {
    const size_t bytes = slot_bytes(c, i);
    for (size_t slot = 0; slot < (size_t)c->slots; slot++) {
      char *here = own + at + slot * bytes, *there = all + at * ranks + (slot * ranks + (size_t)rank) * bytes;
      memcpy(out ? here : there, out ? there : here, bytes);
    }
    at += (size_t)c->slots * bytes;
  }
}

tarn_status tarn__carried_share(tarn__carried *c) {
  void *own;
  tarn__host_room room = {0};
  if (c->comm->size == 1) return TARN_STATUS_OK;
  tarn_status status = tarn__device_read(c->model->device, &own, c->end, c->bytes, &room);
  if (status == TARN_STATUS_OK) status = tarn__comm_gather(c->comm, c->gathered, own, c->bytes);
  for (int r = 0; r < c->comm->size && status == TARN_STATUS_OK; r++)
    deal(c, c->next, c->gathered + (size_t)r * c->bytes, r, false);
  tarn__host_room_close(&room);
  return status;
}

static void swap(char **a, char **b) {
  char *kept = *a;
  *a = *b;
  *b = kept;
}

void tarn__carried_advance(tarn__carried *carried) {
  swap(&carried->start, &carried->end);
  swap(&carried->all, &carried->next);
}

// Describes the tensors of a file, without values.
static size_t describe(tarn__carried *c) {
  size_t count = 0;
  for (int i = 0; i < c->model->decoder.count; i++) {
    const int64_t rows = c->tracks * c->slots * c->comm->size, width = width_of(c->model, i);
    if (width == 0) continue;
    snprintf(c->names[count], sizeof c->names[count], "%sdecoder.layer%d", TARN__TENSOR_STATE, i + 1);
    c->stored[count] = (tarn__stored){.name = c->names[count],
                                      .dtype = "F32",
                                      .dims = 2,
                                      .shape = {rows, width},
                                      .bytes = (size_t)(rows * width) * sizeof(float)};
    count++;
  }
  return count;
}

const tarn__stored *tarn__carried_stored(tarn__carried *c, size_t *count) {
  const bool alone = c->comm->size == 1;
  const char *at = alone ? c->start : c->all;
  *count = describe(c);
  for (size_t k = 0; k < *count; k++) {
    c->stored[k].data = at;
    c->stored[k].device = alone ? c->model->device : NULL;
    at += c->stored[k].bytes;
  }
  return c->stored;
}

static tarn_status check(const tarn__stored *found, const tarn__stored *wanted, const char *path) {
  TARN_REQUIRE(found, DATA, "%s: tensor \"%s\", which its description asks for (train.carry_state), is missing", path,
               wanted->name);
  TARN_REQUIRE(found->dims == 2 && strcmp(found->dtype, "F32") == 0 && found->shape[1] == wanted->shape[1], DATA,
               "%s: tensor \"%s\" is not F32 of tracks x %lld", path, found->name, (long long)wanted->shape[1]);
  TARN_REQUIRE(found->shape[0] == wanted->shape[0], DATA,
               "%s: its text was read in %lld tracks (train.carry_state), and this training reads it in %lld; resume "
               "with as many ranks as before",
               path, (long long)found->shape[0], (long long)wanted->shape[0]);
  return TARN_STATUS_OK;
}

// Reads all states, and distributes those of the rank's own batches.
static tarn_status take(tarn__carried *c, const tarn__safetensors *file, char *all, char *own) {
  size_t at = 0;
  const size_t count = describe(c);
  for (size_t k = 0; k < count; k++) {
    const tarn__stored *found = tarn__safetensors_find(file, c->stored[k].name);
    TARN_TRY(check(found, &c->stored[k], file->path));
    tarn__map_take(all + at, &file->map, found->data, found->bytes);
    at += found->bytes;
  }
  if (c->all) memcpy(c->all, all, at);
  deal(c, all, own, c->comm->rank, true);
  return tarn__device_put(c->model->device, c->start, own, c->bytes);
}

tarn_status tarn__carried_load(tarn__carried *c, const tarn__safetensors *file) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->comm->size + 1, c->bytes));
  const tarn_status status = take(c, file, memory, (char *)memory + (size_t)c->comm->size * c->bytes);
  tarn__free(memory);
  return tarn__map_judge(&file->map, status);
}

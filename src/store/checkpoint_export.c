// Public functions that make a checkpoint from others.
#include "base/memory.h"
#include "config/config_part.h"
#include "device/devices.h"
#include "store/checkpoint.h"
#include "tarn/checkpoint.h"
#include "task/task.h"

tarn_status tarn_checkpoint_export(const char *output, const char *path) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  tarn__checkpoint_extra extra = {.source = c->source, .target = c->target, .update = c->update, .dense = true};
  tarn_status status = tarn__checkpoint_save(output, c->model, &extra);
  tarn__checkpoint_close(&c);
  return status;
}

tarn_status tarn_checkpoint_export_bf16(const char *output, const char *path) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__BF16));
  tarn__checkpoint_extra extra = {.source = c->source, .target = c->target, .update = c->update, .dense = c->dense};
  tarn_status status = tarn__checkpoint_save(output, c->model, &extra);
  tarn__checkpoint_close(&c);
  return status;
}

// Only what a file holds says in what it is used, so one that holds no such matrix is not written: frozen weights may
// be given by their seed, and INT4 leaves tables of vocabularies in INT8.
static bool would_hold(const tarn__checkpoint *c, tarn__rounding rounding) {
  for (size_t i = 0; i < c->model->param_count; i++) {
    const tarn__param *param = c->model->params[i];
    if (param->rounds >= rounding && (param->trained || c->dense)) return true;
  }
  return false;
}

static tarn_status save_rounded(const char *output, const tarn__checkpoint *c, tarn__rounding rounding) {
  const tarn__device *device = c->model->device;
  const bool int4 = rounding == TARN__ROUNDING_INT4;
  if (tarn__config_task(c->config)->uses >> TARN__USE_TRANSLATE & 1u) TARN_TRY(tarn__config_check_decoding(c->config));
  TARN_REQUIRE(would_hold(c, rounding), UNSUPPORTED,
               "%s: in %s its file would hold no matrix: each is frozen and given by its seed, %sor read by more than "
               "products and lookups",
               c->path, int4 ? "int4" : "int8", int4 ? "a table of a vocabulary (int8 holds it), " : "");
  TARN_REQUIRE(device->type->quantise && device->type->host_memory, UNSUPPORTED,
               "the device %s has no products of INT8 or INT4", device->name);
  tarn__checkpoint_extra extra = {
      .source = c->source, .target = c->target, .update = c->update, .dense = c->dense, .rounding = rounding};
  return tarn__checkpoint_save(output, c->model, &extra);
}

static tarn_status export_rounded(const char *output, const char *path, tarn__rounding rounding) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  const tarn_status status = save_rounded(output, c, rounding);
  tarn__checkpoint_close(&c);
  return status;
}

tarn_status tarn_checkpoint_export_int8(const char *output, const char *path) {
  return export_rounded(output, path, TARN__ROUNDING_INT8);
}

tarn_status tarn_checkpoint_export_int4(const char *output, const char *path) {
  return export_rounded(output, path, TARN__ROUNDING_INT4);
}

tarn_status tarn_checkpoint_prune(const char *output, const char *path, const tarn_prune *prune) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open_pruned(&c, path, TARN__F32, prune));
  tarn__checkpoint_extra extra = {.source = c->source, .target = c->target, .update = c->update, .dense = c->dense};
  tarn_status status = tarn__checkpoint_save(output, c->model, &extra);
  tarn__checkpoint_close(&c);
  return status;
}

static tarn_status find_all(char **files, const char *const *paths, size_t count) {
  for (size_t i = 0; i < count; i++) TARN_TRY(tarn__checkpoint_find(&files[i], paths[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn_checkpoint_average(const char *output, const char *const *paths, size_t count) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(char *)));
  char **files = memory;
  tarn_status status = find_all(files, paths, count);
  const tarn__device *device;
  if (status == TARN_STATUS_OK) status = tarn__device_default(&device, TARN__F32);
  if (status == TARN_STATUS_OK)
    status = tarn__checkpoint_average(output, (const char *const *)files, count, device, NULL, 0);
  for (size_t i = 0; i < count; i++) tarn__free(files[i]);
  tarn__free(files);
  return status;
}

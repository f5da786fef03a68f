#include "store/twin.h"

#include <string.h>

#include "base/memory.h"

tarn_status tarn__twin_open(tarn__model **twin, const tarn__model *model, tarn__dtype dtype) {
  return tarn__model_open(twin, model->config, model->source_vocab, model->target_vocab, dtype, false);
}

size_t tarn__twin_bytes(const tarn__model *twin) {
  tarn__model_size size;
  tarn__model_measure(twin, &size);
  return size.trained_bytes + size.frozen_bytes + tarn__model_pack_bytes(twin, TARN__ROUNDING_NONE);
}

tarn_status tarn__twin_allocate(tarn__model *twin, const tarn__model *model, int64_t update) {
  TARN_TRY(tarn__model_allocate(twin));
  // The factors of reservoirs are known already.
  for (size_t i = 0; i < twin->param_count; i++) twin->params[i]->factor = model->params[i]->factor;
  tarn__model_set_draws(twin, update);
  return tarn__model_initialise_frozen(twin, model->seed);
}

// As a checkpoint stores it.
static tarn_status read_values(const tarn__model *model, size_t index, const tarn__part_reader *parts, float *values) {
  const tarn__param *param = model->params[index];
  if (param->training.master || !param->training.part) return tarn__param_get(param, values);
  const size_t bytes = (size_t)(param->rows * param->cols) * sizeof *values;
  return parts->read(parts->user, index, TARN__PART_MASTER, values, 0, bytes);
}

// `values` has space for the largest trained parameter.
static tarn_status take_all(tarn__model *twin, const tarn__model *model, const tarn__part_reader *parts,
                            float *values) {
  for (size_t i = 0; i < model->param_count; i++) {
    if (!model->params[i]->trained) continue;
    TARN_TRY(read_values(model, i, parts, values));
    TARN_TRY(tarn__param_set(twin->params[i], values));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__twin_take(tarn__model *twin, const tarn__model *model, int64_t update,
                            const tarn__part_reader *parts) {
  size_t largest = 0;
  void *values;
  TARN_REQUIRE(twin->param_count == model->param_count, INTERNAL, "a model and its twin have other parameters");
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *own = twin->params[i], *param = model->params[i];
    const size_t count = (size_t)(param->rows * param->cols);
    TARN_REQUIRE(strcmp(own->name, param->name) == 0 && own->rows == param->rows && own->cols == param->cols, INTERNAL,
                 "%s of a model is %s of its twin", param->name, own->name);
    if (param->trained && count > largest) largest = count;
  }
  TARN_TRY(tarn__model_redraw(twin, update));
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, largest, sizeof(float)));
  const tarn_status status = take_all(twin, model, parts, values);
  tarn__free(values);
  return status;
}

#include "store/model_copy.h"

#include <string.h>

#include "base/memory.h"

tarn__dtype tarn__model_copy_type(const tarn_config *config) {
  return config->dynamics.precision == TARN_ITERATING_DOUBLE ? TARN__F64 : TARN__F32;
}

tarn_status tarn__model_copy_open(tarn__model **copy, const tarn__model *model) {
  return tarn__model_open(copy, model->config, model->source_vocab, model->target_vocab,
                          tarn__model_copy_type(model->config), false);
}

size_t tarn__model_copy_bytes(const tarn__model *copy) {
  tarn__model_size size;
  tarn__model_measure(copy, &size);
  return size.trained_bytes + size.frozen_bytes + tarn__model_pack_bytes(copy, TARN__ROUNDING_NONE);
}

static tarn_status check_same(const tarn__model *copy, const tarn__model *model) {
  TARN_REQUIRE(copy->param_count == model->param_count, INTERNAL, "a model and its copy have other parameters");
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *own = copy->params[i], *param = model->params[i];
    TARN_REQUIRE(strcmp(own->name, param->name) == 0 && own->rows == param->rows && own->cols == param->cols, INTERNAL,
                 "%s of a model is %s of its copy", param->name, own->name);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__model_copy_allocate(tarn__model *copy, const tarn__model *model, int64_t update) {
  TARN_TRY(check_same(copy, model));
  TARN_TRY(tarn__model_allocate(copy));
  // The factors of reservoirs are known already.
  for (size_t i = 0; i < copy->param_count; i++) copy->params[i]->factor = model->params[i]->factor;
  tarn__model_set_draws(copy, update);
  return tarn__model_initialise_frozen(copy, model->seed);
}

// As a checkpoint stores it.
static tarn_status read_values(const tarn__model *model, size_t index, const tarn__part_reader *parts, float *values) {
  const tarn__param *param = model->params[index];
  if (param->training.master || !param->training.part) return tarn__param_get(param, values);
  const size_t bytes = (size_t)(param->rows * param->cols) * sizeof *values;
  return parts->read(parts->user, index, TARN__PART_MASTER, values, 0, bytes);
}

// `values` has space for the largest trained parameter.
static tarn_status take_all(tarn__model *copy, const tarn__model *model, const tarn__part_reader *parts,
                            float *values) {
  for (size_t i = 0; i < model->param_count; i++) {
    if (!model->params[i]->trained) continue;
    TARN_TRY(read_values(model, i, parts, values));
    TARN_TRY(tarn__param_set(copy->params[i], values));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__model_copy_take(tarn__model *copy, const tarn__model *model, int64_t update,
                                  const tarn__part_reader *parts) {
  size_t largest = 0;
  void *values;
  TARN_TRY(check_same(copy, model));
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const size_t count = (size_t)(param->rows * param->cols);
    if (param->trained && count > largest) largest = count;
  }
  TARN_TRY(tarn__model_redraw(copy, update));
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, largest, sizeof(float)));
  const tarn_status status = take_all(copy, model, parts, values);
  tarn__free(values);
  return status;
}

// Values of a checkpoint's parameters, one at a time: mapped, or read, widened or drawn for the caller.
#include <string.h>

#include "base/fixed.h"
#include "device/dtype.h"
#include "device/int4.h"
#include "store/checkpoint_check.h"
#include "store/checkpoint_info.h"
#include "store/recipe.h"
#include "store/regenerate.h"

// Tensors in other tools' files need not be aligned.
static bool is_aligned(const tarn__stored *tensor, size_t size) { return (uintptr_t)tensor->data % size == 0; }

bool tarn_checkpoint_info_stored(const tarn_checkpoint_info *info, tarn_checkpoint_stored *stored, size_t param) {
  *stored = (tarn_checkpoint_stored){0};
  if (param >= info->param_count) return false;
  const tarn__safetensors *tensors = &info->memory->file.tensors;
  const tarn__param *known = info->memory->model->params[param];
  const tarn__stored *tensor = tarn__checkpoint_values(tensors, "", known);
  if (tarn__stored_is(tensor, "F32") && is_aligned(tensor, sizeof(float))) {
    *stored = (tarn_checkpoint_stored){.precision = "fp32", .values = tensor->data};
  } else if (tarn__stored_is(tensor, "BF16") && is_aligned(tensor, sizeof(uint16_t))) {
    *stored = (tarn_checkpoint_stored){.precision = "bf16", .values = tensor->data};
  } else if (tarn__stored_is(tensor, "I8")) {
    const tarn__stored *scales = tarn__checkpoint_scales(tensors, known);
    if (is_aligned(scales, sizeof(float)))
      *stored = (tarn_checkpoint_stored){.precision = "int8", .values = tensor->data, .scales = scales->data};
  }
  return stored->values != NULL;
}

const float *tarn_checkpoint_info_mapped(const tarn_checkpoint_info *info, size_t param) {
  tarn_checkpoint_stored stored;
  const bool fp32 = tarn_checkpoint_info_stored(info, &stored, param) && strcmp(stored.precision, "fp32") == 0;
  return fp32 ? stored.values : NULL;
}

// Opening the description has checked types and shapes.
static void read_values(const tarn__safetensors *tensors, const tarn__stored *tensor, const tarn__param *param,
                        float *values) {
  const size_t count = (size_t)(param->rows * param->cols);
  if (tarn__stored_is(tensor, "BF16")) {
    for (size_t i = 0; i < count; i++) {
      uint16_t half;
      memcpy(&half, (const char *)tensor->data + i * sizeof half, sizeof half);
      values[i] = tarn__bf16_to_f32(half);
    }
    return;
  }
  if (tarn__stored_rounding(tensor) == TARN__ROUNDING_NONE) {
    memcpy(values, tensor->data, count * sizeof *values);
    return;
  }
  const tarn__stored *scales = tarn__checkpoint_scales(tensors, param);
  const bool int4 = tarn__stored_rounding(tensor) == TARN__ROUNDING_INT4;
  for (int64_t row = 0; row < param->rows; row++) {
    const signed char *numbers = (const signed char *)tensor->data + row * param->cols;
    const unsigned char *groups = (const unsigned char *)tensor->data + row * tarn__int4_bytes(param->cols);
    float scale;
    memcpy(&scale, (const char *)scales->data + (size_t)row * sizeof scale, sizeof scale);
    for (int64_t col = 0; col < param->cols; col++, values++)
      *values = scale * (float)(int4 ? tarn__int4_number(groups, col) : numbers[col]);
  }
}

// As in opening the model: within the limits, from the draw of the file's update, and with the hash of the recipe.
static tarn_status draw_values(const struct tarn__checkpoint_info_memory *m, const char *recipe,
                               const tarn__param *param, float *values) {
  TARN_TRY(tarn__regenerate_check(m->model, m->path, true));
  tarn__model_set_draws(m->model, m->file.update);
  TARN_TRY(tarn__param_initialise(param, m->file.seed, values));
  tarn__param drawn = *param;
  tarn__hash(drawn.hash, values, (size_t)(param->rows * param->cols) * sizeof *values);
  return tarn__recipe_verify(recipe, m->path, &drawn);
}

static tarn_status take_values(const struct tarn__checkpoint_info_memory *m, tarn__param *param, float *values) {
  const char *recipe;
  TARN_TRY(tarn__checkpoint_recipe(&recipe, &m->file, param));
  if (recipe) return draw_values(m, recipe, param, values);
  const tarn__safetensors *tensors = &m->file.tensors;
  read_values(tensors, tarn__checkpoint_values(tensors, "", param), param, values);
  return TARN_STATUS_OK;
}

tarn_status tarn_checkpoint_info_values(const tarn_checkpoint_info *info, size_t param, float *values) {
  const struct tarn__checkpoint_info_memory *m = info->memory;
  TARN_REQUIRE(param < info->param_count, USAGE, "%s: there is no parameter number %zu; there are %zu", info->path,
               param, info->param_count);
  return tarn__map_judge(&m->file.tensors.map, take_values(m, m->model->params[param], values));
}

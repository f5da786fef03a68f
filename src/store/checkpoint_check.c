#include "store/checkpoint_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/int4.h"
#include "store/checkpoint_keys.h"

const tarn__stored *tarn__checkpoint_values(const tarn__safetensors *tensors, const char *prefix,
                                            const tarn__param *param) {
  char name[512];
  snprintf(name, sizeof name, "%s%s", prefix, param->name);
  return tarn__safetensors_find(tensors, name);
}

const tarn__stored *tarn__checkpoint_scales(const tarn__safetensors *tensors, const tarn__param *param) {
  char name[512];
  snprintf(name, sizeof name, "%s%s", param->name, TARN__TENSOR_SCALE);
  return tarn__safetensors_find(tensors, name);
}

// The factors of INT4; other bytes of its rows may be any.
static tarn_status check_factors(const tarn__safetensors *tensors, const tarn__stored *tensor,
                                 const tarn__param *param) {
  const int64_t groups = tarn__int4_groups(param->cols), bytes = tarn__int4_bytes(param->cols);
  for (int64_t row = 0; row < param->rows; row++)
    for (int64_t group = 0; group < groups; group++) {
      const int factor = tarn__int4_factor((const unsigned char *)tensor->data + row * bytes, group);
      TARN_REQUIRE(abs(factor) <= TARN__INT4_MOST_FACTOR, DATA,
                   "%s: tensor \"%s\" holds the factor %d where -%d to %d was expected", tensors->path, tensor->name,
                   factor, TARN__INT4_MOST_FACTOR, TARN__INT4_MOST_FACTOR);
    }
  tarn__map_release_part(&tensors->map, tensor->data, tensor->bytes);
  return TARN_STATUS_OK;
}

// A matrix of integers. Sizes are known to be those of the shapes.
static tarn_status check_rounded(const tarn__safetensors *tensors, const tarn__stored *tensor,
                                 const tarn__param *param) {
  const tarn__stored *scales = tarn__checkpoint_scales(tensors, param);
  const bool int4 = tarn__stored_rounding(tensor) == TARN__ROUNDING_INT4;
  const int64_t width = int4 ? tarn__int4_bytes(param->cols) : param->cols;
  TARN_REQUIRE(tarn__stored_rounding(tensor) <= param->rounds, DATA,
               "%s: tensor \"%s\" is %s, which cannot stand for that parameter", tensors->path, tensor->name,
               tensor->dtype);
  TARN_REQUIRE(tensor->dims == 2 && tensor->shape[0] == param->rows && tensor->shape[1] == width, DATA,
               "%s: tensor \"%s\" is not %s of %lld x %lld, which its description asks for", tensors->path,
               tensor->name, tensor->dtype, (long long)param->rows, (long long)width);
  TARN_REQUIRE(tarn__stored_is(scales, "F32") && scales->dims == 1 && scales->shape[0] == param->rows, DATA,
               "%s: tensor \"%s\" is %s and needs F32 of %lld as \"%s%s\", which %s", tensors->path, tensor->name,
               tensor->dtype, (long long)param->rows, tensor->name, TARN__TENSOR_SCALE,
               scales ? "is another" : "is missing");
  for (int64_t i = 0; i < param->rows; i++) {
    float scale;
    memcpy(&scale, (const char *)scales->data + (size_t)i * sizeof scale, sizeof scale);
    TARN_REQUIRE(isfinite(scale) && scale >= 0.0f, DATA,
                 "%s: tensor \"%s\" holds %g where a finite number from 0 was expected", tensors->path, scales->name,
                 (double)scale);
  }
  return int4 ? check_factors(tensors, tensor, param) : TARN_STATUS_OK;
}

// A dense file may hold any frozen weights, but signs must be 1 or -1: their matrix depends on it.
static tarn_status check_signs(const tarn__safetensors *tensors, const tarn__stored *tensor) {
  for (size_t i = 0; i < tensor->bytes / sizeof(float); i++) {
    float value;
    memcpy(&value, (const char *)tensor->data + i * sizeof value, sizeof value);
    TARN_REQUIRE(value == 1.0f || value == -1.0f, DATA, "%s: tensor \"%s\" holds %g where 1 or -1 was expected",
                 tensors->path, tensor->name, (double)value);
  }
  return TARN_STATUS_OK;
}

static tarn_status check_typed(const tarn__safetensors *tensors, const char *prefix, const tarn__param *param,
                               const char *dtype) {
  const tarn__stored *tensor = tarn__checkpoint_values(tensors, prefix, param);
  TARN_REQUIRE(tensor, DATA, "%s: tensor \"%s%s\", which its description asks for, is missing", tensors->path, prefix,
               param->name);
  if (*prefix == '\0' && tarn__stored_rounding(tensor)) return check_rounded(tensors, tensor, param);
  bool same = param->rows == 1
                  ? tensor->dims == 1 && tensor->shape[0] == param->cols
                  : tensor->dims == 2 && tensor->shape[0] == param->rows && tensor->shape[1] == param->cols;
  const bool half = *prefix == '\0' && !param->vector && param->init.kind != TARN__INIT_SIGNS;
  TARN_REQUIRE(same && (strcmp(tensor->dtype, dtype) == 0 || (half && strcmp(tensor->dtype, "BF16") == 0)), DATA,
               "%s: tensor \"%s\" is not %s of %lld x %lld, which its description asks for", tensors->path,
               tensor->name, dtype, (long long)param->rows, (long long)param->cols);
  return param->init.kind == TARN__INIT_SIGNS ? check_signs(tensors, tensor) : TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_check_values(const tarn__safetensors *tensors, const char *prefix,
                                          const tarn__param *param) {
  return check_typed(tensors, prefix, param, "F32");
}

// Any bytes are codes of F8.
static tarn_status check_blocks(const tarn__safetensors *tensors, const char *prefix, const tarn__param *param) {
  const tarn__stored *tensor = tarn__checkpoint_values(tensors, prefix, param);
  const size_t bytes = tarn__moment_bytes(TARN__MOMENTS_F8, (size_t)(param->rows * param->cols));
  TARN_REQUIRE(tarn__stored_is(tensor, "U8") && tensor->dims == 1 && tensor->bytes == bytes, DATA,
               "%s: tensor \"%s%s\" is not U8 of %zu, which its description asks for", tensors->path, prefix,
               param->name, bytes);
  for (size_t at = 0; at < bytes; at += TARN__MOMENT_SCALE + TARN__MOMENT_BLOCK) {
    float scale;
    memcpy(&scale, (const char *)tensor->data + at, sizeof scale);
    TARN_REQUIRE(tarn__moment_is_scale(scale), DATA,
                 "%s: block %zu of tensor \"%s\" has the scale %g, which is no power of two", tensors->path,
                 at / (TARN__MOMENT_SCALE + TARN__MOMENT_BLOCK), tensor->name, (double)scale);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_check_moments(const tarn__safetensors *tensors, const tarn__param *param) {
  const char *dtype = param->training.moments == TARN__MOMENTS_BF16 ? "BF16" : "F32";
  if (param->training.moments == TARN__MOMENTS_F8) {
    TARN_TRY(check_blocks(tensors, TARN__TENSOR_MOMENT1, param));
    return check_blocks(tensors, TARN__TENSOR_MOMENT2, param);
  }
  TARN_TRY(check_typed(tensors, TARN__TENSOR_MOMENT1, param, dtype));
  return check_typed(tensors, TARN__TENSOR_MOMENT2, param, dtype);
}

static void mark(bool *known, const tarn__safetensors *tensors, const tarn__stored *tensor) {
  if (tensor) known[tensor - tensors->tensors] = true;
}

// The matrix NAME.weight of signs, which a dense file holds for other tools.
static tarn_status mark_matrix(bool *known, const tarn__safetensors *tensors, const tarn__param *signs) {
  char name[512];
  snprintf(name, sizeof name, "%.*s.weight", (int)(strrchr(signs->name, '.') - signs->name), signs->name);
  const tarn__param matrix = {.name = name, .rows = signs->out, .cols = signs->in};
  const tarn__stored *tensor = tarn__checkpoint_values(tensors, "", &matrix);
  mark(known, tensors, tensor);
  return tensor ? tarn__checkpoint_check_values(tensors, "", &matrix) : TARN_STATUS_OK;
}

static tarn_status mark_param(bool *known, const tarn__checkpoint_file *file, const tarn__param *param) {
  const tarn__safetensors *tensors = &file->tensors;
  const tarn__stored *values = tarn__checkpoint_values(tensors, "", param);
  mark(known, tensors, values);
  if (tarn__stored_rounding(values)) mark(known, tensors, tarn__checkpoint_scales(tensors, param));
  if (param->trained && file->has_progress) {
    mark(known, tensors, tarn__checkpoint_values(tensors, TARN__TENSOR_MOMENT1, param));
    mark(known, tensors, tarn__checkpoint_values(tensors, TARN__TENSOR_MOMENT2, param));
    mark(known, tensors, tarn__checkpoint_values(tensors, TARN__TENSOR_SUM, param));
  }
  return param->init.kind == TARN__INIT_SIGNS ? mark_matrix(known, tensors, param) : TARN_STATUS_OK;
}

// Backskipping's own parameters and their moments, and carried states: only a model in training has them, so the name
// must suffice.
static bool is_helper(const tarn__checkpoint_file *file, const char *name) {
  static const char *const states[] = {TARN__TENSOR_MOMENT1, TARN__TENSOR_MOMENT2};
  if (strncmp(name, TARN__TENSOR_STATE, strlen(TARN__TENSOR_STATE)) == 0) return file->has_progress;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    if (strncmp(name, states[i], strlen(states[i])) != 0) continue;
    name += strlen(states[i]);
    break;
  }
  return file->has_progress && strncmp(name, TARN__TENSOR_HELPER, strlen(TARN__TENSOR_HELPER)) == 0;
}

tarn_status tarn__checkpoint_check_names(const tarn__checkpoint_file *file, const tarn__model *model) {
  const tarn__safetensors *tensors = &file->tensors;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, tensors->count, sizeof(bool)));
  bool *known = memory;
  mark(known, tensors, tarn__safetensors_find(tensors, TARN__TENSOR_SOURCE_VOCAB));
  mark(known, tensors, tarn__safetensors_find(tensors, TARN__TENSOR_TARGET_VOCAB));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < model->param_count && status == TARN_STATUS_OK; i++)
    status = mark_param(known, file, model->params[i]);
  size_t first = 0;
  while (first < tensors->count && (known[first] || is_helper(file, tensors->tensors[first].name))) first++;
  tarn__free(known);
  TARN_TRY(status);
  TARN_REQUIRE(first == tensors->count, DATA, "%s: its description does not ask for its tensor \"%.200s\"",
               tensors->path, tensors->tensors[first].name);
  return TARN_STATUS_OK;
}

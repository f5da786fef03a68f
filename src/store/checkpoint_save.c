// Writing of checkpoints: collects tensors and texts, hashes them, and passes them to the safetensors writer.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "config/config_write.h"
#include "device/int4.h"
#include "device/transfer.h"
#include "ops/hadamard.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/progress.h"
#include "store/recipe.h"

// The contents of the file. The arena owns texts and names.
typedef struct contents {
  tarn__arena arena;
  tarn__stored *tensors;
  tarn__stored_text *texts;
  size_t tensor_count, tensor_capacity, text_count, text_capacity;
} contents;

static void contents_close(contents *c) {
  tarn__free(c->tensors);
  tarn__free(c->texts);
  tarn__arena_close(&c->arena);
}

static tarn_status add_text(contents *c, const char *key, const char *text) {
  TARN_TRY(tarn__grow(&c->texts, &c->text_capacity, c->text_count + 1, sizeof *c->texts));
  char *copy;
  TARN_TRY(tarn__arena_strdup(&c->arena, &copy, text));
  c->texts[c->text_count++] = (tarn__stored_text){key, copy};
  return TARN_STATUS_OK;
}

static tarn_status add_number(contents *c, const char *key, int64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, number);
  return add_text(c, key, text);
}

static tarn_status add_joined(contents *c, char **name, const char *prefix, const char *rest) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", prefix, rest);
  return tarn__arena_strdup(&c->arena, name, text);
}

// `values`, F32 or BF16, are in the memory of the parameter's device.
static tarn_status add_typed(contents *c, const char *prefix, const tarn__param *param, const void *values,
                             tarn__dtype dtype) {
  TARN_TRY(tarn__grow(&c->tensors, &c->tensor_capacity, c->tensor_count + 1, sizeof *c->tensors));
  TARN_REQUIRE(values, INTERNAL, "parameter %s has no values to store", param->name);
  char *name;
  TARN_TRY(add_joined(c, &name, prefix, param->name));
  tarn__stored tensor = {.name = name,
                         .dtype = dtype == TARN__BF16 ? "BF16" : "F32",
                         .dims = 2,
                         .shape = {param->rows, param->cols},
                         .data = values,
                         .device = param->device};
  if (param->rows == 1) {
    tensor.dims = 1;
    tensor.shape[0] = param->cols;
  }
  tensor.bytes = (size_t)(param->rows * param->cols) * tarn__dtype_size(dtype);
  c->tensors[c->tensor_count++] = tensor;
  return TARN_STATUS_OK;
}

static tarn_status add_values(contents *c, const char *prefix, const tarn__param *param, const float *values) {
  return add_typed(c, prefix, param, values, TARN__F32);
}

// An array of a parameter that is divided into parts.
typedef struct part_source {
  tarn__stored_source source;
  tarn__part_reader reader;
  size_t param;
  tarn__part_array array;
} part_source;

static tarn_status read_part(const tarn__stored_source *source, void *to, size_t first, size_t bytes) {
  const part_source *s = (const part_source *)source;
  return s->reader.read(s->reader.user, s->param, s->array, to, first, bytes);
}

static tarn_status add_parts(contents *c, const char *prefix, const tarn__param *param, tarn__part_array array,
                             tarn__dtype dtype, size_t index, const tarn__checkpoint_extra *extra) {
  void *memory;
  TARN_REQUIRE(extra->parts.read, INTERNAL, "the parts of parameter %s cannot be read", param->name);
  TARN_TRY(tarn__arena_alloc(&c->arena, &memory, 1, sizeof(part_source)));
  part_source *source = memory;
  *source = (part_source){{read_part}, extra->parts, index, array};
  TARN_TRY(add_typed(c, prefix, param, source, dtype));  // which provides the values
  c->tensors[c->tensor_count - 1].data = NULL;
  c->tensors[c->tensor_count - 1].source = &source->source;
  return TARN_STATUS_OK;
}

// For parameter number `index`, like the next ones.
static tarn_status add_master(contents *c, const tarn__param *param, size_t index,
                              const tarn__checkpoint_extra *extra) {
  if (!param->training.master && param->training.part)
    return add_parts(c, "", param, TARN__PART_MASTER, TARN__F32, index, extra);
  return param->training.master ? add_values(c, "", param, param->training.master)
                                : add_typed(c, "", param, param->value, param->dtype);
}

// Blocks of F8 are bytes.
static tarn_status add_moment(contents *c, const char *prefix, const tarn__param *param, tarn__part_array array,
                              size_t index, const tarn__checkpoint_extra *extra) {
  const tarn__param_training *training = &param->training;
  const tarn__dtype dtype = training->moments == TARN__MOMENTS_BF16 ? TARN__BF16 : TARN__F32;
  if (training->part)
    TARN_TRY(add_parts(c, prefix, param, array, dtype, index, extra));
  else
    TARN_TRY(add_typed(c, prefix, param, array == TARN__PART_MOMENT1 ? training->moment1 : training->moment2, dtype));
  if (training->moments != TARN__MOMENTS_F8) return TARN_STATUS_OK;
  tarn__stored *tensor = &c->tensors[c->tensor_count - 1];
  tensor->dtype = "U8";
  tensor->dims = 1;
  tensor->bytes = tarn__moment_bytes(training->moments, (size_t)(param->rows * param->cols));
  tensor->shape[0] = (int64_t)tensor->bytes;
  return TARN_STATUS_OK;
}

static tarn_status add_moments(contents *c, const tarn__param *param, size_t index,
                               const tarn__checkpoint_extra *extra) {
  TARN_TRY(add_moment(c, TARN__TENSOR_MOMENT1, param, TARN__PART_MOMENT1, index, extra));
  return add_moment(c, TARN__TENSOR_MOMENT2, param, TARN__PART_MOMENT2, index, extra);
}

static tarn_status add_sum(contents *c, const tarn__param *param, size_t index, const tarn__checkpoint_extra *extra) {
  const tarn__param *part = param->training.part;
  if (part && part->training.grad_sum)
    return add_parts(c, TARN__TENSOR_SUM, param, TARN__PART_SUM, TARN__F32, index, extra);
  return param->training.grad_sum ? add_values(c, TARN__TENSOR_SUM, param, param->training.grad_sum) : TARN_STATUS_OK;
}

// For other tools: the matrix NAME.weight of the signs NAME.signs.
static tarn_status add_dense(contents *c, const tarn__param *signs, const float *values) {
  void *memory;
  size_t count;
  char name[512];
  tarn__hadamard_shape shape = tarn__hadamard_shape_signs(signs);
  TARN_REQUIRE(values, INTERNAL, "parameter %s has no fp32 values to store", signs->name);
  TARN_TRY(tarn__mul_size(&count, (size_t)signs->out, (size_t)signs->in));
  TARN_TRY(tarn__arena_alloc(&c->arena, &memory, count, sizeof(float)));
  void *own;
  tarn__host_room room = {0};
  const size_t bytes = (size_t)(signs->rows * signs->cols) * sizeof *values;
  tarn_status status = tarn__device_read(signs->device, &own, values, bytes, &room);
  if (status == TARN_STATUS_OK) status = tarn__hadamard_dense(memory, own, &shape);
  tarn__host_room_close(&room);
  TARN_TRY(status);
  snprintf(name, sizeof name, "%.*s.weight", (int)(strrchr(signs->name, '.') - signs->name), signs->name);
  return add_values(c, "", &(tarn__param){.name = name, .rows = signs->out, .cols = signs->in}, memory);
}

// The dense matrix of a parameter stored as its entries.
static tarn_status add_entries(contents *c, const tarn__param *param) {
  void *values;
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)param->rows, (size_t)param->cols));
  TARN_TRY(tarn__arena_alloc(&c->arena, &values, count, sizeof(float)));
  TARN_TRY(tarn__param_get(param, values));
  return add_values(c, "", &(tarn__param){.name = param->name, .rows = param->rows, .cols = param->cols}, values);
}

// As integers, row by row, with the scales of the rows.
static tarn_status add_rounded(contents *c, const tarn__model *model, const tarn__param *param,
                               tarn__rounding rounding) {
  void *values, *scales;
  char *name;
  const tarn__device_weight weight = {
      .value = param->value, .rows = param->rows, .cols = param->cols, .dtype = param->dtype, .rounding = rounding};
  const bool int4 = rounding == TARN__ROUNDING_INT4;
  const int64_t row_bytes = int4 ? tarn__int4_bytes(param->cols) : param->cols;
  TARN_TRY(tarn__arena_alloc(&c->arena, &values, (size_t)param->rows, (size_t)row_bytes));
  TARN_TRY(tarn__arena_alloc(&c->arena, &scales, (size_t)param->rows, sizeof(float)));
  TARN_TRY(model->device->type->quantise(model->device, values, scales, &weight, tarn__threads()));
  for (int64_t i = 0; i < param->rows; i++)
    TARN_REQUIRE(isfinite(((const float *)scales)[i]), DATA,
                 "row %lld of the parameter %s is not finite, which %s cannot express", (long long)i + 1, param->name,
                 int4 ? "int4" : "int8");
  TARN_TRY(add_joined(c, &name, param->name, TARN__TENSOR_SCALE));
  TARN_TRY(add_values(c, "", &(tarn__param){.name = name, .rows = 1, .cols = param->rows}, scales));
  TARN_TRY(tarn__grow(&c->tensors, &c->tensor_capacity, c->tensor_count + 1, sizeof *c->tensors));
  c->tensors[c->tensor_count++] = (tarn__stored){.name = param->name,
                                                 .dtype = int4 ? "U8" : "I8",
                                                 .dims = 2,
                                                 .shape = {param->rows, row_bytes},
                                                 .data = values,
                                                 .bytes = (size_t)(param->rows * row_bytes)};
  return TARN_STATUS_OK;
}

static tarn_status add_parameters(contents *c, const tarn__model *model, const tarn__checkpoint_extra *extra) {
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const tarn__dtype dtype = param->training.master ? TARN__F32 : param->dtype;
    const void *values = param->training.master ? param->training.master : param->value;
    TARN_REQUIRE(dtype == TARN__F32 || dtype == TARN__BF16, INTERNAL, "parameter %s has no fp32 values to store",
                 param->name);
    const tarn__rounding rounding = extra->rounding < param->rounds ? extra->rounding : param->rounds;
    if (rounding != TARN__ROUNDING_NONE && (param->trained || extra->dense)) {
      TARN_TRY(add_rounded(c, model, param, rounding));
      continue;
    }
    if (param->trained || extra->dense) {
      TARN_TRY(param->entries > 0 ? add_entries(c, param) : add_master(c, param, i, extra));
      if (param->init.kind == TARN__INIT_SIGNS) TARN_TRY(add_dense(c, param, values));
      continue;
    }
    char *key;
    char recipe[TARN__RECIPE_TEXT];
    tarn__recipe_write(recipe, param, model->seed);
    TARN_TRY(add_joined(c, &key, TARN__KEY_FROZEN, param->name));
    TARN_TRY(add_text(c, key, recipe));
  }
  // The state of the training: moments, and helpers that are not part of the model.
  for (size_t i = 0; extra->progress && i < model->param_count + model->helper_count; i++) {
    const tarn__param *param = tarn__model_param(model, i);
    if (!param->trained) continue;
    if (i >= model->param_count) TARN_TRY(add_master(c, param, i, extra));
    TARN_TRY(add_moments(c, param, i, extra));
    TARN_TRY(add_sum(c, param, i, extra));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_states(contents *c, const tarn__checkpoint_extra *extra) {
  TARN_TRY(tarn__grow(&c->tensors, &c->tensor_capacity, c->tensor_count + extra->state_count, sizeof *c->tensors));
  for (size_t i = 0; i < extra->state_count; i++) c->tensors[c->tensor_count++] = extra->states[i];
  return TARN_STATUS_OK;
}

static tarn_status add_vocab(contents *c, const char *name, const char *key, const tarn_vocab *vocab) {
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  TARN_TRY(tarn__grow(&c->tensors, &c->tensor_capacity, c->tensor_count + 1, sizeof *c->tensors));
  c->tensors[c->tensor_count++] =
      (tarn__stored){.name = name, .dtype = "U8", .dims = 1, .shape = {(int64_t)size}, .data = bytes, .bytes = size};
  return add_text(c, key, tarn_vocab_hash(vocab));
}

static tarn_status add_config(contents *c, const tarn_config *config) {
  char *text;
  TARN_TRY(tarn__config_write_model(config, &text));
  tarn_status status = add_text(c, TARN__KEY_MODEL, text);
  tarn_config_text_close(&text);
  TARN_TRY(status);
  TARN_TRY(tarn_config_write(config, &text));
  status = add_text(c, TARN__KEY_CONFIG, text);
  tarn_config_text_close(&text);
  return status;
}

static tarn_status add_progress(contents *c, const tarn__progress *progress) {
  char *text;
  TARN_TRY(tarn__progress_write(&text, progress));
  tarn_status status = add_text(c, TARN__KEY_PROGRESS, text);
  free(text);
  return status;
}

static tarn_status collect(contents *c, const tarn__model *model, const tarn__checkpoint_extra *extra) {
  TARN_TRY(add_text(c, TARN__KEY_FORMAT, TARN__CHECKPOINT_VERSION));
  TARN_TRY(add_text(c, TARN__KEY_PROGRAM, TARN_VERSION));
  TARN_TRY(add_text(c, TARN__KEY_GENERATOR, tarn__generator));
  TARN_TRY(add_number(c, TARN__KEY_SEED, (int64_t)model->seed));
  TARN_TRY(add_number(c, TARN__KEY_UPDATE, extra->update));
  TARN_TRY(add_config(c, model->config));
  if (extra->data_hash) TARN_TRY(add_text(c, TARN__KEY_DATA, extra->data_hash));
  if (extra->valid_hash) TARN_TRY(add_text(c, TARN__KEY_VALID, extra->valid_hash));
  if (extra->set_hashes) TARN_TRY(add_text(c, TARN__KEY_SETS, extra->set_hashes));
  if (extra->dynamics) TARN_TRY(add_text(c, TARN__KEY_DYNAMICS, extra->dynamics));
  if (extra->progress) TARN_TRY(add_progress(c, extra->progress));
  if (extra->experts) TARN_TRY(add_text(c, TARN__KEY_EXPERTS, extra->experts));
  if (extra->halting) TARN_TRY(add_text(c, TARN__KEY_HALTING, extra->halting));
  TARN_TRY(add_parameters(c, model, extra));
  if (extra->state_count > 0) TARN_TRY(add_states(c, extra));
  TARN_TRY(add_vocab(c, TARN__TENSOR_SOURCE_VOCAB, TARN__KEY_SOURCE_VOCAB, extra->source));
  if (extra->target != extra->source)
    TARN_TRY(add_vocab(c, TARN__TENSOR_TARGET_VOCAB, TARN__KEY_TARGET_VOCAB, extra->target));
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_write(const char *path, const tarn__stored *tensors, size_t count,
                                   const tarn__stored_text *texts, size_t text_count) {
  return tarn__checkpoint_write_mapped(path, tensors, count, texts, text_count, &(tarn__map){0});
}

tarn_status tarn__checkpoint_write_mapped(const char *path, const tarn__stored *tensors, size_t count,
                                          const tarn__stored_text *texts, size_t text_count, const tarn__map *map) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, text_count + 1, sizeof *texts));
  tarn__stored_text *all = memory;
  size_t used = 0;
  for (size_t i = 0; i < text_count; i++)
    if (strcmp(texts[i].key, TARN__KEY_HASH) != 0) all[used++] = texts[i];
  char hash[TARN__HASH_TEXT];
  tarn_status status = tarn__safetensors_hash(hash, tensors, count, all, used, TARN__KEY_HASH, NULL);
  all[used++] = (tarn__stored_text){TARN__KEY_HASH, hash};
  if (status == TARN_STATUS_OK) status = tarn__safetensors_write_mapped(path, tensors, count, all, used, map);
  tarn__free(memory);
  return status;
}

tarn_status tarn__checkpoint_save(const char *path, const tarn__model *model, const tarn__checkpoint_extra *extra) {
  contents c = {0};
  tarn_status status = collect(&c, model, extra);
  if (status == TARN_STATUS_OK) status = tarn__checkpoint_write(path, c.tensors, c.tensor_count, c.texts, c.text_count);
  contents_close(&c);
  return status;
}

// tarn_checkpoint_info: a file's information about its parameters.
#include <stdio.h>
#include <string.h>

#include "config/config_share.h"
#include "store/checkpoint_check.h"
#include "store/checkpoint_info.h"
#include "store/checkpoint_keys.h"
#include "task/bands.h"

// A number and a space for every layer of both stacks, and words.
enum { PLACES_TEXT = 2 * TARN_CONFIG_LAYERS * 5 + 64 };

static void append(char *text, const char *word) {
  size_t used = strlen(text);
  snprintf(text + used, PLACES_TEXT - used, "%s%s", used ? " " : "", word);
}

// The layers of a stack that use the set named by "<stack>.<set>.rest".
static void layers_of(char *places, const char *name, const char *stack_name, const tarn_stack *stack) {
  size_t length = strlen(stack_name);
  if (strncmp(name, stack_name, length) != 0 || name[length] != '.') return;
  const char *set = name + length + 1;
  for (int32_t i = 0; i < stack->count; i++) {
    size_t set_length = strlen(stack->layers[i].set);
    if (strncmp(set, stack->layers[i].set, set_length) != 0 || set[set_length] != '.') continue;
    char word[96];
    if (*places)
      snprintf(word, sizeof word, "%d", i + 1);
    else
      snprintf(word, sizeof word, "%s layer %d", stack_name, i + 1);
    append(places, word);
  }
  if (!*places) append(places, stack_name);  // a norm at the top of the stack
}

// The decoder's layers that use the encoder's set of that name (model.share_stacks).
static void shared_layers_of(char *places, const tarn_config *config, const char *name) {
  static const char side[] = "encoder.";
  if (!config->model.share_stacks || strncmp(name, side, strlen(side)) != 0) return;
  bool first = true;
  for (int32_t i = 0; i < config->decoder.count; i++) {
    const tarn_layer *layer = &config->decoder.layers[i];
    const char *set = name + strlen(side);
    const size_t length = strlen(layer->set);
    // Compares the name first: a walk over the encoder for each parameter and layer took minutes in deep stacks.
    if (strncmp(set, layer->set, length) != 0 || set[length] != '.') continue;
    if (tarn__config_shared_layer(config, layer) < 0) continue;
    char text[96];
    snprintf(text, sizeof text, first ? "decoder layer %d" : "%d", i + 1);
    append(places, text);
    first = false;
  }
}

// For words in bands all but the first table, which is that of its side or of the output.
static void find_bands(char *places, const tarn__task_weights *weights, const tarn__param *param) {
  const tarn__bands *bands[] = {&weights->source_bands, &weights->target_bands, &weights->output_bands};
  static const char *const words[] = {"source", "target", "output"};
  for (int i = 0; i < 3; i++)
    for (int k = 1; k < TARN__BAND_PARAMS; k++)
      if (param == tarn__bands_param(bands[i], k) && param->role != TARN__ROLE_OUTPUT) append(places, words[i]);
}

static void find_places(char *places, const tarn__model *model, const tarn__param *param) {
  *places = '\0';
  if (param == model->source_positions) append(places, "source positions");
  if (param == model->target_positions) append(places, "target positions");
  if (param == model->segments) append(places, "segments");
  for (int side = 0; side < TARN__SIDES; side++)
    if (param == model->embedding_norms[side].gain || param == model->embedding_norms[side].bias)
      append(places, "embeddings");
  if (param->role == TARN__ROLE_OUTPUT) append(places, "output");
  if (param == model->weights.source_table) append(places, "source");
  if (param == model->weights.target_table) append(places, "target");
  if (param == model->weights.output_table) append(places, "output");
  const tarn__linear_weights *source = &model->weights.source_projection, *target = &model->weights.target_projection;
  if (param == source->weight || param == source->bias) append(places, "source");
  if (param == target->weight || param == target->bias) append(places, "target");
  if (param == model->weights.output_factor) append(places, "output");
  find_bands(places, &model->weights, param);
  if (*places) return;
  layers_of(places, param->name, "encoder", &model->config->encoder);
  layers_of(places, param->name, "decoder", &model->config->decoder);
  shared_layers_of(places, model->config, param->name);
}

// Adds the bytes of a tensor, which must pass the checks of loading; 0 if there is none.
static tarn_status add_bytes(int64_t *bytes, const tarn__safetensors *tensors, const char *prefix,
                             const tarn__param *param) {
  const tarn__stored *stored = tarn__checkpoint_values(tensors, prefix, param);
  if (!stored) return TARN_STATUS_OK;
  TARN_TRY(tarn__checkpoint_check_values(tensors, prefix, param));
  *bytes += (int64_t)stored->bytes;
  if (*prefix == '\0' && tarn__stored_rounding(stored))
    *bytes += (int64_t)tarn__checkpoint_scales(tensors, param)->bytes;
  return TARN_STATUS_OK;
}

static tarn_status describe(tarn_checkpoint_info *info, tarn_checkpoint_param *out, tarn__param *param) {
  struct tarn__checkpoint_info_memory *m = info->memory;
  const tarn__safetensors *tensors = &m->file.tensors;
  char places[PLACES_TEXT];
  const char *recipe;
  char *copy;
  find_places(places, m->model, param);
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, places));
  TARN_TRY(tarn__checkpoint_recipe(&recipe, &m->file, param));
  if (!recipe && !tarn__checkpoint_values(tensors, "", param)) return tarn__checkpoint_check_values(tensors, "", param);
  int64_t bytes = 0;
  TARN_TRY(add_bytes(&bytes, tensors, "", param));
  *out = (tarn_checkpoint_param){.name = param->name,
                                 .rows = param->rows,
                                 .cols = param->cols,
                                 .trained = param->trained,
                                 .uses = param->uses,
                                 .places = copy,
                                 .stored_bytes = bytes,
                                 .recipe = bytes ? NULL : recipe};
  *(param->trained ? &info->trained_bytes : &info->frozen_bytes) += out->stored_bytes;
  if (!param->trained) return TARN_STATUS_OK;
  TARN_TRY(add_bytes(&info->optimiser_bytes, tensors, TARN__TENSOR_SUM, param));
  TARN_TRY(add_bytes(&info->optimiser_bytes, tensors, TARN__TENSOR_MOMENT1, param));
  return add_bytes(&info->optimiser_bytes, tensors, TARN__TENSOR_MOMENT2, param);
}

static tarn_status describe_all(tarn_checkpoint_info *info) {
  struct tarn__checkpoint_info_memory *m = info->memory;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->model->param_count, sizeof(tarn_checkpoint_param)));
  tarn_checkpoint_param *params = memory;
  info->params = params;
  info->param_count = m->model->param_count;
  for (size_t i = 0; i < info->param_count; i++) TARN_TRY(describe(info, &params[i], m->model->params[i]));
  tarn__model_size size;
  tarn__model_measure(m->model, &size);
  info->trained = size.trained;
  info->frozen = size.frozen;
  info->shared_uses = size.shared_uses;
  info->shared_layers = size.shared_layers;
  return TARN_STATUS_OK;
}

// Tensors of no parameter: in a file for other tools, the matrices of signs; in a training, backskipping's predictors
// with their moments.
static void count_others(tarn_checkpoint_info *info) {
  const tarn__safetensors *tensors = &info->memory->file.tensors;
  int64_t rest = -info->trained_bytes - info->frozen_bytes - info->optimiser_bytes - info->vocab_bytes;
  for (size_t i = 0; i < tensors->count; i++) rest += (int64_t)tensors->tensors[i].bytes;
  *(info->memory->file.has_progress ? &info->optimiser_bytes : &info->frozen_bytes) += rest;
}

static const char *kind_of(const tarn_checkpoint_info *info) {
  if (info->memory->file.has_progress) return "training";
  if (info->frozen > 0 && info->frozen_bytes > 0) return "dense";
  return info->averaged ? "average" : "model";
}

// Vectors are always in fp32.
static const char *precision_of(const tarn_checkpoint_info *info) {
  const tarn__safetensors *tensors = &info->memory->file.tensors;
  tarn__rounding rounding = TARN__ROUNDING_NONE;
  bool half = false;
  for (size_t i = 0; i < info->param_count; i++) {
    const tarn__stored *values = tarn__checkpoint_values(tensors, "", info->memory->model->params[i]);
    if (tarn__stored_rounding(values) > rounding) rounding = tarn__stored_rounding(values);
    half |= tarn__stored_is(values, "BF16");
  }
  return rounding == TARN__ROUNDING_INT4 ? "int4" : rounding == TARN__ROUNDING_INT8 ? "int8" : half ? "bf16" : "fp32";
}

static tarn_status open_parts(tarn_checkpoint_info *info, const char *path) {
  struct tarn__checkpoint_info_memory *m = info->memory;
  TARN_TRY(tarn__checkpoint_find(&m->path, path));
  TARN_TRY(tarn__checkpoint_file_open(&m->file, m->path));
  info->path = m->path;
  TARN_TRY(tarn__checkpoint_file_config(&m->file, &m->config));
  TARN_TRY(tarn__checkpoint_file_vocabs(&m->file, &m->source, &m->target));
  info->source_vocab = tarn_vocab_size(m->source);
  info->target_vocab = tarn_vocab_size(m->target);
  info->joint_vocab = m->source == m->target;
  TARN_TRY(tarn__model_open(&m->model, m->config, info->source_vocab, info->target_vocab, TARN__F32, false));
  info->model = m->file.model_text;
  info->config = m->file.config_text;
  info->averaged = tarn__safetensors_text(&m->file.tensors, TARN__KEY_AVERAGE);
  info->update = m->file.update;
  info->seed = m->file.seed;
  info->file_bytes = (int64_t)m->file.tensors.map.size;
  TARN_TRY(tarn__checkpoint_check_names(&m->file, m->model));
  TARN_TRY(describe_all(info));
  const tarn__stored *source = tarn__safetensors_find(&m->file.tensors, TARN__TENSOR_SOURCE_VOCAB);
  const tarn__stored *target = tarn__safetensors_find(&m->file.tensors, TARN__TENSOR_TARGET_VOCAB);
  info->vocab_bytes = (source ? (int64_t)source->bytes : 0) + (target ? (int64_t)target->bytes : 0);
  count_others(info);
  info->kind = kind_of(info);
  info->precision = precision_of(info);
  return TARN_STATUS_OK;
}

tarn_status tarn_checkpoint_info_open(tarn_checkpoint_info **out, const char *path) {
  *out = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_checkpoint_info)));
  tarn_checkpoint_info *info = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *info->memory);
  info->memory = memory;
  if (status == TARN_STATUS_OK) status = tarn__map_judge(&info->memory->file.tensors.map, open_parts(info, path));
  if (status != TARN_STATUS_OK) {
    tarn_checkpoint_info_close(&info);
    return status;
  }
  *out = info;
  return TARN_STATUS_OK;
}

void tarn_checkpoint_info_close(tarn_checkpoint_info **info) {
  if (!*info) return;
  struct tarn__checkpoint_info_memory *m = (*info)->memory;
  if (m) {
    tarn__model_close(&m->model);
    if (m->target != m->source) tarn_vocab_close(&m->target);
    tarn_vocab_close(&m->source);
    tarn_config_close(&m->config);
    tarn__checkpoint_file_close(&m->file);
    tarn__arena_close(&m->arena);
    tarn__free(m->path);
    tarn__free(m);
  }
  tarn__free(*info);
  *info = NULL;
}

tarn_status tarn_checkpoint_vocabs(tarn_vocab **source, tarn_vocab **target, const char *path) {
  char *found;
  tarn__checkpoint_file file;
  *source = *target = NULL;
  TARN_TRY(tarn__checkpoint_find(&found, path));
  tarn_status status = tarn__checkpoint_file_open(&file, found);
  tarn__free(found);
  TARN_TRY(status);
  status = tarn__map_judge(&file.tensors.map, tarn__checkpoint_file_vocabs(&file, source, target));
  if (status != TARN_STATUS_OK) {
    if (*target != *source) tarn_vocab_close(target);
    tarn_vocab_close(source);
  }
  if (*target == *source) *target = NULL;
  tarn__checkpoint_file_close(&file);
  return status;
}

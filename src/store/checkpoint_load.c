// Reading of checkpoints. Files are not trusted: before memory for a model is taken, the contents must agree with their
// hash, the description must be valid, and the tensors must be those of the description.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_write.h"
#include "device/transfer.h"
#include "run/file_kind.h"
#include "store/checkpoint.h"
#include "store/checkpoint_check.h"
#include "store/checkpoint_keys.h"
#include "store/progress.h"
#include "store/prune.h"
#include "store/recipe.h"
#include "store/regenerate.h"
#include "tarn/plan.h"

static tarn_status require_text(const tarn__checkpoint_file *file, const char **text, const char *key) {
  *text = tarn__safetensors_text(&file->tensors, key);
  TARN_REQUIRE(*text, DATA, "%s: its metadata has no \"%s\"; this is no checkpoint of tarn", file->tensors.path, key);
  return TARN_STATUS_OK;
}

static tarn_status read_number(const tarn__checkpoint_file *file, int64_t *number, const char *key) {
  const char *text;
  char *end;
  TARN_TRY(require_text(file, &text, key));
  errno = 0;
  *number = strtoll(text, &end, 10);
  TARN_REQUIRE(!errno && end != text && !*end, DATA, "%s: \"%s\" is no whole number in its metadata",
               file->tensors.path, key);
  return TARN_STATUS_OK;
}

static tarn_status read_texts(tarn__checkpoint_file *file) {
  const tarn__safetensors *t = &file->tensors;
  const char *text;
  TARN_TRY(require_text(file, &text, TARN__KEY_FORMAT));
  TARN_REQUIRE(strcmp(text, TARN__CHECKPOINT_VERSION) == 0, DATA,
               "%s: format %.20s is not known; this program reads format %s", t->path, text, TARN__CHECKPOINT_VERSION);
  TARN_TRY(require_text(file, &text, TARN__KEY_HASH));
  char hash[TARN__HASH_TEXT];
  TARN_TRY(tarn__safetensors_hash(hash, t->tensors, t->count, t->texts, t->text_count, TARN__KEY_HASH, &t->map));
  TARN_REQUIRE(tarn__hash_same(text, hash), DATA,
               "%s: the file is damaged: its contents hash to %s, but %.32s was written with them", t->path, hash,
               text);
  TARN_TRY(require_text(file, &file->config_text, TARN__KEY_CONFIG));
  TARN_TRY(require_text(file, &file->model_text, TARN__KEY_MODEL));
  int64_t seed;
  TARN_TRY(read_number(file, &seed, TARN__KEY_SEED));
  file->seed = (uint64_t)seed;
  TARN_TRY(read_number(file, &file->update, TARN__KEY_UPDATE));
  text = tarn__safetensors_text(t, TARN__KEY_PROGRESS);
  file->has_progress = text != NULL;
  return text ? tarn__progress_read(&file->progress, text, t->path) : TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_file_open(tarn__checkpoint_file *file, const char *path) {
  *file = (tarn__checkpoint_file){0};
  tarn_status status = tarn__safetensors_open(&file->tensors, path);
  if (status == TARN_STATUS_OK) status = tarn__map_judge(&file->tensors.map, read_texts(file));
  if (status == TARN_STATUS_OK) return status;
  const bool changed = tarn__map_check(&file->tensors.map) != TARN_STATUS_OK;  // whose line names the file
  tarn__checkpoint_file_close(file);
  return changed ? status : tarn__file_kind_explain(status, path, TARN__FILE_KIND_MODEL);
}

// The precision of a file of integers, and its first tensor that says so; else NONE.
static tarn__rounding find_rounded(const tarn__safetensors *tensors, const char **name) {
  static const char *const vocabs[] = {TARN__TENSOR_SOURCE_VOCAB, TARN__TENSOR_TARGET_VOCAB};
  tarn__rounding most = TARN__ROUNDING_NONE;
  *name = NULL;
  for (size_t i = 0; i < tensors->count; i++) {
    const tarn__stored *tensor = &tensors->tensors[i];
    const tarn__rounding own = tarn__stored_rounding(tensor);
    if (own <= most || strcmp(tensor->name, vocabs[0]) == 0 || strcmp(tensor->name, vocabs[1]) == 0) continue;
    most = own;
    *name = tensor->name;
  }
  return most;
}

static const char *word_of(tarn__rounding rounding) { return rounding == TARN__ROUNDING_INT4 ? "int4" : "int8"; }

static tarn_status refuse_rounded(const tarn__safetensors *tensors) {
  const char *name;
  const tarn__rounding found = find_rounded(tensors, &name);
  TARN_REQUIRE(found == TARN__ROUNDING_NONE, DATA,
               "%s: it holds %s (tensor \"%.200s\"), which is computed with in %s only; take the checkpoint that it "
               "was made of",
               tensors->path, word_of(found), name, word_of(found));
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_file_open_whole(tarn__checkpoint_file *file, const char *path) {
  TARN_TRY(tarn__checkpoint_file_open(file, path));
  const tarn_status status = refuse_rounded(&file->tensors);
  if (status != TARN_STATUS_OK) tarn__checkpoint_file_close(file);
  return status;
}

void tarn__checkpoint_file_close(tarn__checkpoint_file *file) {
  tarn__safetensors_close(&file->tensors);
  *file = (tarn__checkpoint_file){0};
}

// The description of the model is in the file twice: alone, for people and other tools, and within the configuration.
// They must agree.
static tarn_status check_model_text(const tarn__checkpoint_file *file, const tarn_config *config) {
  tarn_config *model;
  char hash[TARN_CONFIG_HASH];
  char model_hash[TARN_CONFIG_HASH];
  TARN_TRY(tarn_config_parse(&model, file->tensors.path, file->model_text, strlen(file->model_text), NULL, 0));
  tarn_status status = tarn__config_model_hash(model, model_hash);
  tarn_config_close(&model);
  TARN_TRY(status);
  TARN_TRY(tarn__config_model_hash(config, hash));
  TARN_REQUIRE(tarn__hash_same(model_hash, hash), DATA, "%s: its model description and its configuration differ",
               file->tensors.path);
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_file_config(const tarn__checkpoint_file *file, tarn_config **config) {
  tarn_status status =
      tarn_config_parse(config, file->tensors.path, file->config_text, strlen(file->config_text), NULL, 0);
  if (status == TARN_STATUS_OK) status = check_model_text(file, *config);
  if (status == TARN_STATUS_OK) return status;
  tarn_config_close(config);
  // A wrong description in a file is a data error, not a usage error.
  return status == TARN_STATUS_USAGE ? TARN_STATUS_DATA : status;
}

// The model was trained with the vocabulary of hash `key`.
static tarn_status open_vocab(const tarn__checkpoint_file *file, tarn_vocab **vocab, const tarn__stored *tensor,
                              const char *key) {
  TARN_REQUIRE(strcmp(tensor->dtype, "U8") == 0, DATA, "%s: tensor \"%s\" has type %s where U8 was expected",
               file->tensors.path, tensor->name, tensor->dtype);
  tarn_status status = tarn_vocab_open_memory(vocab, tensor->data, tensor->bytes);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", file->tensors.path);
  const char *hash = tarn__safetensors_text(&file->tensors, key);
  if (hash && tarn__hash_same(hash, tarn_vocab_hash(*vocab))) return TARN_STATUS_OK;
  status =
      tarn__fail(TARN_STATUS_DATA, "%s: its vocabulary (tensor \"%s\", hash %s) is not that of its model (hash %.32s)",
                 file->tensors.path, tensor->name, tarn_vocab_hash(*vocab), hash ? hash : "missing");
  tarn_vocab_close(vocab);
  return status;
}

tarn_status tarn__checkpoint_file_vocabs(const tarn__checkpoint_file *file, tarn_vocab **source, tarn_vocab **target) {
  *source = *target = NULL;
  const tarn__stored *first = tarn__safetensors_find(&file->tensors, TARN__TENSOR_SOURCE_VOCAB);
  const tarn__stored *second = tarn__safetensors_find(&file->tensors, TARN__TENSOR_TARGET_VOCAB);
  TARN_REQUIRE(first, DATA, "%s: it has no vocabulary (tensor \"%s\")", file->tensors.path, TARN__TENSOR_SOURCE_VOCAB);
  TARN_TRY(open_vocab(file, source, first, TARN__KEY_SOURCE_VOCAB));
  tarn_status status = TARN_STATUS_OK;
  if (second)
    status = open_vocab(file, target, second, TARN__KEY_TARGET_VOCAB);
  else
    *target = *source;
  if (status != TARN_STATUS_OK) tarn_vocab_close(source);
  return status;
}

static const char *find_recipe(const tarn__checkpoint_file *file, const tarn__param *param) {
  char key[512];
  snprintf(key, sizeof key, "%s%s", TARN__KEY_FROZEN, param->name);
  return param->trained ? NULL : tarn__safetensors_text(&file->tensors, key);
}

tarn_status tarn__checkpoint_recipe(const char **recipe, const tarn__checkpoint_file *file, tarn__param *param) {
  const char *path = file->tensors.path;
  *recipe = find_recipe(file, param);
  if (!*recipe) return TARN_STATUS_OK;
  TARN_REQUIRE(
      !tarn__checkpoint_values(&file->tensors, "", param), DATA,
      "%s: it holds values of %s as well as the line that says how they are drawn (\"%s%s\"); leave one of them "
      "out",
      path, param->name, TARN__KEY_FROZEN, param->name);
  TARN_TRY(tarn__recipe_take_factor(*recipe, path, param));
  return tarn__recipe_check(*recipe, path, param, file->seed);
}

// The holder of the moments of a parameter: itself, or its part.
static const tarn__param *holder(const tarn__param *param) {
  return param->training.part ? param->training.part : param;
}

// Checks that everything the model needs is present. *recipes is set if frozen values must be computed, unless the
// model already has them.
static tarn_status check_contents(const tarn__checkpoint_file *file, const tarn__model *model, bool moments,
                                  bool *recipes) {
  *recipes = false;
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    const char *recipe;
    TARN_TRY(tarn__checkpoint_recipe(&recipe, file, param));
    if (recipe) {
      *recipes = *recipes || tarn__recipe_verify(recipe, file->tensors.path, param) != TARN_STATUS_OK;
      continue;
    }
    TARN_TRY(tarn__checkpoint_check_values(&file->tensors, "", param));
    if (!moments || !param->trained) continue;
    TARN_TRY(tarn__checkpoint_check_moments(&file->tensors, param));
    if (holder(param)->training.grad_sum)
      TARN_TRY(tarn__checkpoint_check_values(&file->tensors, TARN__TENSOR_SUM, param));
  }
  for (size_t i = 0; moments && i < model->helper_count; i++) {
    const tarn__param *param = model->helpers[i];
    if (!param->trained) continue;
    TARN_TRY(tarn__checkpoint_check_values(&file->tensors, "", param));
    TARN_TRY(tarn__checkpoint_check_moments(&file->tensors, param));
  }
  return TARN_STATUS_OK;
}

enum { PIECE = TARN__MAP_PIECE / sizeof(float) };  // numbers copied through the host's memory at a time

// Reads an array of that format into the parameter's device, or its part; through `buffer`, piece by piece, if the host
// cannot write there. Copied in any case, because tensors in other tools' files need not be aligned.
static tarn_status take_state(const tarn__checkpoint_file *file, const char *prefix, const tarn__param *param,
                              tarn__moments format, void *out, float *buffer) {
  const tarn__stored *tensor = tarn__checkpoint_values(&file->tensors, prefix, param);
  const tarn__param *held = holder(param);
  const size_t bytes = tarn__moment_bytes(format, (size_t)(held->rows * held->cols));
  const char *from = (const char *)tensor->data + tarn__moment_bytes(format, (size_t)held->training.first);
  if (tarn__device_is_host(param->device)) {
    tarn__map_take(out, &file->tensors.map, from, bytes);
    return TARN_STATUS_OK;
  }
  for (size_t done = 0; done < bytes; done += TARN__MAP_PIECE) {
    const size_t left = bytes - done, now = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
    tarn__map_take(buffer, &file->tensors.map, from + done, now);
    TARN_TRY(tarn__device_put(param->device, (char *)out + done, buffer, now));
  }
  return TARN_STATUS_OK;
}

// The destination for direct reading of a parameter's values: the optimiser's fp32 copy.
static float *passage(const tarn__param *param) {
  return param->dtype == TARN__F64 || !tarn__device_is_host(param->device) ? NULL : param->training.master;
}

// Reads numbers of a tensor in F32 or BF16. BF16 values are read into the upper half of the buffer, so none is
// overwritten before it has been widened.
static void take_floats(const tarn__checkpoint_file *file, float *values, const tarn__stored *tensor, size_t first,
                        size_t count) {
  const char *from = tensor->data;
  if (strcmp(tensor->dtype, "F32") == 0) {
    tarn__map_take(values, &file->tensors.map, from + first * sizeof *values, count * sizeof *values);
    return;
  }
  uint16_t half;
  char *halves = (char *)values + count * sizeof half;
  tarn__map_take(halves, &file->tensors.map, from + first * sizeof half, count * sizeof half);
  for (size_t i = 0; i < count; i++) {
    memcpy(&half, halves + i * sizeof half, sizeof half);
    values[i] = tarn__bf16_to_f32(half);
  }
}

static tarn_status take_values(const tarn__checkpoint_file *file, tarn__param *param, float *buffer) {
  const tarn__stored *tensor = tarn__checkpoint_values(&file->tensors, "", param);
  const bool mapped = param->mapped.value || param->mapped.rounded;
  const size_t count = mapped ? 0 : (size_t)(param->rows * param->cols);
  for (size_t done = 0; done < count; done += PIECE) {
    const size_t now = count - done < PIECE ? count - done : PIECE;
    float *values = passage(param) ? passage(param) + done : buffer;
    take_floats(file, values, tensor, done, now);
    TARN_TRY(tarn__param_set_part(param, done, values, now));
  }
  if (param->training.used_rows)
    TARN_TRY(tarn__device_fill(param->device, param->training.used_rows, 1, (size_t)param->rows));
  if (!param->trained) tarn__hash_map(param->hash, &file->tensors.map, tensor->data, tensor->bytes);
  return TARN_STATUS_OK;
}

// `buffer` has space for a piece.
static tarn_status set_values(const tarn__checkpoint_file *file, tarn__param *param, float *buffer, bool moments) {
  if (!find_recipe(file, param)) TARN_TRY(take_values(file, param, buffer));
  if (!moments || !param->trained) return TARN_STATUS_OK;
  const tarn__param_training *held = &holder(param)->training;
  TARN_TRY(take_state(file, TARN__TENSOR_MOMENT1, param, held->moments, held->moment1, buffer));
  TARN_TRY(take_state(file, TARN__TENSOR_MOMENT2, param, held->moments, held->moment2, buffer));
  if (!held->grad_sum) return TARN_STATUS_OK;
  return take_state(file, TARN__TENSOR_SUM, param, TARN__MOMENTS_F32, held->grad_sum, buffer);
}

static tarn_status initialise_helper(tarn__param *param, uint64_t seed) {
  void *values;
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, (size_t)(param->rows * param->cols), sizeof(float)));
  tarn_status status = tarn__param_initialise(param, seed, values);
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, values);
  tarn__free(values);
  return status;
}

// With backskipping's own parameters: predictors are stored, feedback is a function of the seed alone.
static tarn_status set_all(const tarn__checkpoint_file *file, tarn__model *model, float *buffer, bool moments) {
  for (size_t i = 0; i < model->param_count; i++) TARN_TRY(set_values(file, model->params[i], buffer, moments));
  for (size_t i = 0; moments && i < model->helper_count; i++) {
    tarn__param *param = model->helpers[i];
    TARN_TRY(param->trained ? set_values(file, param, buffer, true) : initialise_helper(param, file->seed));
  }
  return TARN_STATUS_OK;
}

static void grow(size_t *most, const tarn__param *param) {
  size_t piece = (size_t)(param->rows * param->cols);
  if (piece < TARN__MOMENT_BLOCK) piece = TARN__MOMENT_BLOCK;  // those of F8 are whole
  if (piece > PIECE) piece = PIECE;
  if (!passage(param) && piece > *most) *most = piece;
}

// Size of the largest piece copied through the host's memory.
static size_t largest_piece(const tarn__model *model) {
  size_t most = 1;
  for (size_t i = 0; i < model->param_count; i++) grow(&most, model->params[i]);
  for (size_t i = 0; i < model->helper_count; i++) grow(&most, model->helpers[i]);
  return most;
}

static tarn_status load(const tarn__checkpoint_file *file, tarn__model *model, bool moments) {
  bool recipes;
  TARN_TRY(check_contents(file, model, moments, &recipes));
  model->seed = file->seed;
  tarn__model_set_draws(model, file->update);
  if (recipes) TARN_TRY(tarn__regenerate(model, file->seed, file->tensors.path));
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const char *recipe = find_recipe(file, param);
    if (recipe) TARN_TRY(tarn__recipe_verify(recipe, file->tensors.path, param));
  }
  void *buffer;
  TARN_TRY(tarn__alloc(&buffer, TARN__MEMORY_OTHER, largest_piece(model), sizeof(float)));
  tarn_status status = set_all(file, model, buffer, moments);
  tarn__free(buffer);
  return status;
}

// Writing into the file while it is read must not produce a different model.
tarn_status tarn__checkpoint_file_load(const tarn__checkpoint_file *file, tarn__model *model, bool moments) {
  return tarn__map_judge(&file->tensors.map, load(file, model, moments));
}

static tarn_status open_model(tarn__checkpoint *c, tarn__dtype dtype) {
  return tarn__model_open(&c->model, c->config, tarn_vocab_size(c->source), tarn_vocab_size(c->target), dtype, false);
}

// Values that kernels can read in the mapped file take no memory of the model, if its device reads the host's memory:
// integers, and BF16 for a BF16 model that only packs them or reads them row by row (tarn__param.rounds).
static tarn_status map_values(tarn__checkpoint *c, const tarn__checkpoint_file *file) {
  size_t rows = 0;
  const bool host = c->model->device->type->host_memory;
  for (size_t i = 0; i < c->model->param_count; i++) {
    tarn__param *param = c->model->params[i];
    const tarn__stored *tensor = tarn__checkpoint_values(&file->tensors, "", param);
    if (tarn__stored_rounding(tensor)) rows += (size_t)param->rows;
    const bool fits = tarn__stored_is(tensor, "BF16") && (uintptr_t)tensor->data % sizeof(uint16_t) == 0;
    if (host && fits && param->rounds && param->dtype == TARN__BF16) param->mapped.value = tensor->data;
  }
  c->model->map = &c->file.map;
  if (rows == 0) return TARN_STATUS_OK;
  const char *name;
  TARN_REQUIRE(host, UNSUPPORTED, "%s: it holds %s, which the device %s cannot read", file->tensors.path,
               word_of(find_rounded(&file->tensors, &name)), c->model->device->name);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, rows, sizeof *c->scales));
  float *next = c->scales = memory;
  for (size_t i = 0; i < c->model->param_count; i++) {
    tarn__param *param = c->model->params[i];
    const tarn__stored *tensor = tarn__checkpoint_values(&file->tensors, "", param);
    if (!tarn__stored_rounding(tensor)) continue;
    const tarn__stored *scales = tarn__checkpoint_scales(&file->tensors, param);
    memcpy(next, scales->data, scales->bytes);
    param->mapped.rounded = tensor->data;
    param->mapped.scales = next;
    param->mapped.rounding = tarn__stored_rounding(tensor);
    next += param->rows;
  }
  return TARN_STATUS_OK;
}

// A frozen layer is a line of text in a file but any amount of memory in a model.
static tarn_status check_memory(const tarn__checkpoint_file *file, const tarn__model *model) {
  tarn__model_size size;
  tarn__model_measure(model, &size);
  const bool host = tarn__device_is_host(model->device);
  const double bytes = (double)size.trained_bytes + (double)size.frozen_bytes,
               available = (double)tarn__device_available(model->device);
  TARN_REQUIRE(available == 0 || bytes <= available, MEMORY,
               "%s: its model takes %.0f MB, and %.0f MB of memory%s%s are available", file->tensors.path, bytes / 1e6,
               available / 1e6, host ? "" : " of the device ", host ? "" : model->device->name);
  return TARN_STATUS_OK;
}

// The way in which a checkpoint is opened.
typedef struct how {
  tarn__dtype dtype;
  const tarn_prune *prune;              // NULL: whole
  tarn_translate_precision *precision;  // the precision of its use, with as little copying as possible; else NULL
} how;

// Resolves AUTO.
static tarn_status choose(how *way, const tarn__safetensors *tensors) {
  if (!way->precision) return refuse_rounded(tensors);
  const char *name;
  const tarn__rounding held = find_rounded(tensors, &name);
  if (*way->precision == TARN_TRANSLATE_PRECISION_AUTO)
    *way->precision = held == TARN__ROUNDING_INT4   ? TARN_TRANSLATE_PRECISION_INT4
                      : held == TARN__ROUNDING_INT8 ? TARN_TRANSLATE_PRECISION_INT8
                                                    : TARN_TRANSLATE_PRECISION_FP32;
  TARN_REQUIRE(held == TARN__ROUNDING_NONE || held == tarn__rounding_of(*way->precision), USAGE,
               "%s: it holds %s, which is computed with in %s only; the precision cannot be %s", tensors->path,
               word_of(held), word_of(held), tarn_translate_precision_name(*way->precision));
  way->dtype = *way->precision == TARN_TRANSLATE_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  return TARN_STATUS_OK;
}

static tarn_status open_parts(tarn__checkpoint *c, const tarn__checkpoint_file *file, how way) {
  bool recipes;
  TARN_TRY(choose(&way, &file->tensors));
  TARN_TRY(tarn__checkpoint_file_config(file, &c->config));
  TARN_TRY(tarn__checkpoint_file_vocabs(file, &c->source, &c->target));
  TARN_TRY(open_model(c, way.dtype));
  TARN_TRY(tarn__checkpoint_check_names(file, c->model));
  if (way.prune) {
    tarn__model_close(&c->model);
    TARN_TRY(tarn__prune_config(&c->config, file->config_text, way.prune));
    TARN_TRY(open_model(c, way.dtype));
  }
  TARN_TRY(check_contents(file, c->model, false, &recipes));
  if (way.precision) TARN_TRY(map_values(c, file));
  TARN_TRY(tarn__regenerate_check(c->model, file->tensors.path, recipes));
  TARN_TRY(check_memory(file, c->model));
  TARN_TRY(tarn__model_allocate(c->model));
  c->update = file->update;
  for (size_t i = 0; i < c->model->param_count; i++)
    c->dense |= !c->model->params[i]->trained && !find_recipe(file, c->model->params[i]);
  return tarn__checkpoint_file_load(file, c->model, false);
}

// The file stays open if values of the model are in it.
static void keep_file(tarn__checkpoint *c, tarn__checkpoint_file *file) {
  bool mapped = false;
  for (size_t i = 0; i < c->model->param_count; i++)
    mapped |= c->model->params[i]->mapped.value || c->model->params[i]->mapped.rounded;
  if (!mapped) {
    c->model->map = NULL;
    return;
  }
  c->file = file->tensors;
  file->tensors = (tarn__safetensors){0};
}

static tarn_status open_file(tarn__checkpoint **checkpoint, const char *path, how way) {
  *checkpoint = NULL;
  void *memory;
  tarn__checkpoint_file file = {0};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__checkpoint)));
  tarn__checkpoint *c = memory;
  tarn_status status = tarn__checkpoint_find(&c->path, path);
  if (status == TARN_STATUS_OK) status = tarn__checkpoint_file_open(&file, c->path);
  if (status == TARN_STATUS_OK) status = tarn__map_judge(&file.tensors.map, open_parts(c, &file, way));
  if (status == TARN_STATUS_OK) keep_file(c, &file);
  tarn__checkpoint_file_close(&file);
  if (status != TARN_STATUS_OK) {
    tarn__checkpoint_close(&c);
    return status;
  }
  *checkpoint = c;
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_open(tarn__checkpoint **checkpoint, const char *path, tarn__dtype dtype) {
  return open_file(checkpoint, path, (how){.dtype = dtype});
}

tarn_status tarn__checkpoint_open_pruned(tarn__checkpoint **checkpoint, const char *path, tarn__dtype dtype,
                                         const tarn_prune *prune) {
  return open_file(checkpoint, path, (how){.dtype = dtype, .prune = prune});
}

tarn_status tarn__checkpoint_check_use(int threads, tarn_translate_overlong overlong) {
  TARN_REQUIRE(threads >= 0 && threads <= 1024, USAGE, "threads must be from 0 to 1024, not %d", threads);
  TARN_REQUIRE(overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE || overlong == TARN_TRANSLATE_OVERLONG_REFUSE, USAGE,
               "there is no rule %d for texts that are overlong", (int)overlong);
  return TARN_STATUS_OK;
}

tarn_status tarn__checkpoint_open_use(tarn__checkpoint **checkpoint, const char *path,
                                      tarn_translate_precision *precision, const tarn_prune *prune) {
  *checkpoint = NULL;
  TARN_REQUIRE(*precision >= 0 && *precision < TARN_TRANSLATE_PRECISION_COUNT, USAGE, "unknown precision");
  return open_file(checkpoint, path, (how){.prune = prune, .precision = precision});
}

void tarn__checkpoint_close(tarn__checkpoint **checkpoint) {
  tarn__checkpoint *c = *checkpoint;
  if (!c) return;
  tarn__model_close(&c->model);
  if (c->target != c->source) tarn_vocab_close(&c->target);
  tarn_vocab_close(&c->source);
  tarn_config_close(&c->config);
  tarn__safetensors_close(&c->file);
  tarn__free(c->scales);
  tarn__free(c->path);
  tarn__free(c);
  *checkpoint = NULL;
}

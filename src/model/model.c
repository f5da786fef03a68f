#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/config_fail.h"
#include "config/config_part.h"
#include "config/config_share.h"
#include "config/pattern.h"
#include "device/devices.h"
#include "graph/entries.h"
#include "model/transparent.h"
#include "model/universal.h"
#include "parts/depth.h"
#include "task/bands.h"

// Counts one more use of the parameters [first, last).
static void count_uses(tarn__model *model, size_t first, size_t last) {
  for (size_t i = first; i < last; i++) model->params[i]->uses++;
}

// The table of biases that the layers of a stack share, if the position scheme has one.
static void declare_biases(tarn__model_stack *stack, tarn__declare *declare, const tarn_config *config,
                           tarn__stack_id id) {
  int64_t heads;
  bool trained;
  const tarn_part_use *position = &config->model.positions;
  if (!tarn__config_biases(config, id, &heads, &trained)) return;
  declare->prefix = tarn__stack_name(id);
  stack->biases = tarn__position_of(position)->declare_biases(declare, position->keys, heads, trained);
}

// The range of parameters of each layer of a stack that has its own set: the first, and one past the last.
typedef size_t (*set_ranges)[2];

// Another layer of a set. If both stacks share the set, it uses the encoder's parameters.
static void use_again(tarn__model *model, const set_ranges ranges[TARN__STACKS], tarn__stack_id id,
                      const tarn_layer *layer) {
  const int32_t shared = id == TARN__STACK_DECODER ? tarn__config_shared_layer(model->config, layer) : -1;
  count_uses(model, ranges[id][layer->first][0], ranges[id][layer->first][1]);
  if (shared >= 0) count_uses(model, ranges[TARN__STACK_ENCODER][shared][0], ranges[TARN__STACK_ENCODER][shared][1]);
}

static tarn_status declare_stack(tarn__model *model, tarn__declare *declare, set_ranges ranges[TARN__STACKS],
                                 tarn__stack_id id) {
  tarn__model_stack *stack = id == TARN__STACK_ENCODER ? &model->encoder : &model->decoder;
  const tarn_stack *layers = tarn__config_stack(model->config, id);
  const char *name = tarn__stack_name(id);
  void *memory;
  TARN_TRY(tarn__arena_alloc(&model->arena, &memory, (size_t)layers->count, sizeof(tarn__model_layer)));
  stack->layers = memory;
  stack->count = layers->count;
  TARN_TRY(tarn__arena_alloc(&model->arena, &memory, (size_t)layers->count, 2 * sizeof(size_t)));
  const set_ranges range = ranges[id] = memory;
  for (int i = 0; i < layers->count; i++) {
    const tarn_layer *layer = &layers->layers[i];
    const tarn_kind *kind = &model->config->kinds[layer->kind];
    char text[128];
    bool bare = tarn__pattern_is_bare(layer->set);
    snprintf(text, sizeof text, "%s %d %s", name, i + 1, bare ? kind->name : layer->set);
    char *label;
    TARN_TRY(tarn__arena_strdup(&model->arena, &label, text));
    stack->layers[i].label = label;
    if (model->training && kind->backskip.method != TARN_BACKSKIP_NONE) {
      TARN_TRY(tarn__arena_alloc(&model->arena, &memory, 1, sizeof(tarn__stand_in_sums)));
      stack->layers[i].sums = memory;
    }
    if (layer->first != i) {
      stack->layers[i].weights = stack->layers[layer->first].weights;
      use_again(model, ranges, id, layer);
      continue;
    }
    char prefix[128], shared[128];
    snprintf(prefix, sizeof prefix, "%s.%s", name, layer->set);
    snprintf(shared, sizeof shared, "%s.%s", tarn__stack_name(TARN__STACK_ENCODER), layer->set);
    declare->prefix = prefix;
    declare->stack = name;
    declare->stack_id = id;
    declare->role = TARN__ROLE_LAYER;
    declare->shared = id == TARN__STACK_DECODER && tarn__config_shared_layer(model->config, layer) >= 0 ? shared : NULL;
    declare->kind = kind;
    range[i][0] = model->param_count;
    stack->layers[i].weights = tarn__layer_declare(declare);
    range[i][1] = model->param_count;
    declare->shared = NULL;
    TARN_TRY(declare->status);
  }
  declare->role = TARN__ROLE_STACK;
  const tarn_kind *top = &model->config->kinds[layers->pattern[layers->depth - 1].kind];
  if (tarn__config_final_norm(model->config, id)) {
    declare->prefix = name;
    declare->kind = NULL;
    declare->norm = top->norm_type;
    stack->norm = tarn__declare_norm(declare, "norm");
  }
  declare_biases(stack, declare, model->config, id);
  declare->prefix = name;
  tarn__universal_declare(stack, declare, layers);
  TARN_TRY(tarn__transparent_declare(model, declare, layers));
  return declare->status;
}

// A table of positions is trained if its side's embedding is. The matrix of an output that shares an input's table is
// trained regardless of the input's positions.
static tarn_status declare_positions(tarn__model *model, tarn__declare *declare) {
  const tarn_config_model *config = &model->config->model;
  const tarn__position_entry *position = tarn__position_of(&config->positions);
  if (!position->declare) return TARN_STATUS_OK;
  const tarn__param *source = model->weights.source_table, *target = model->weights.target_table;
  if (source)
    model->source_positions =
        position->declare(declare, target ? "source_positions.weight" : "positions.weight", config, source->trained);
  if (target)
    model->target_positions =
        position->declare(declare, source ? "target_positions.weight" : "positions.weight", config, target->trained);
  return declare->status;
}

// The other terms of the embeddings of a text. Segments are initialised like the embeddings.
static tarn_status declare_sum(tarn__model *model, tarn__declare *declare) {
  const tarn_config_model *config = &model->config->model;
  const tarn__init init = {TARN__INIT_NORMAL, config->embedding_std, 1};
  if (config->segments > 0)
    model->segments = tarn__declare_param(declare, "segments.weight", config->segments, declare->d_model,
                                          model->weights.target_table->trained, init);
  const bool apart = model->weights.source_table && model->weights.target_table;
  declare->kind = NULL;
  declare->norm = config->norm_type;
  if (config->embedding_norm && model->weights.source_table)
    model->embedding_norms[TARN__SIDE_SOURCE] = tarn__declare_norm(declare, apart ? "source_norm" : "norm");
  if (config->embedding_norm && model->weights.target_table)
    model->embedding_norms[TARN__SIDE_TARGET] = tarn__declare_norm(declare, apart ? "target_norm" : "norm");
  return declare->status;
}

// From the width of a side's table to d_model, with a bias, named after the table and trained if it is. Logits of an
// output that shares it start with a variance of at most 2, as inputs do.
static tarn__linear_weights declare_projection(tarn__declare *declare, const tarn__param *table, int64_t d_model) {
  char name[64], weight[80], bias[80];
  tarn__linear_weights weights = {0};
  if (!table || table->cols == d_model || declare->status != TARN_STATUS_OK) return weights;
  const char *own = table->name + strlen(declare->prefix) + 1;
  snprintf(name, sizeof name, "%.*sprojection", (int)(strlen(own) - strlen("weight")), own);
  snprintf(weight, sizeof weight, "%s.weight", name);
  snprintf(bias, sizeof bias, "%s.bias", name);
  const tarn__init normal = {TARN__INIT_NORMAL, sqrt(2.0 / (double)(d_model + table->cols)), 1};
  declare->role = table->role;
  weights.weight = tarn__declare_param(declare, weight, d_model, table->cols, table->trained, normal);
  weights.bias = tarn__declare_param(declare, bias, 1, d_model, table->trained, (tarn__init){TARN__INIT_ZERO, 0.0, 1});
  return weights;
}

static void declare_projections(tarn__task_weights *weights, tarn__declare *declare, int64_t d_model) {
  weights->source_projection = declare_projection(declare, weights->source_table, d_model);
  if (!weights->source_table || weights->source_table != weights->target_table) {
    weights->target_projection = declare_projection(declare, weights->target_table, d_model);
    return;
  }
  weights->target_projection = weights->source_projection;
  if (!weights->source_projection.weight) return;
  weights->source_projection.weight->uses++;
  weights->source_projection.bias->uses++;
}

// Counts how many of the inputs and the output use each table; for bands the table is that of the first band.
static void count_tables(tarn__task_weights *weights) {
  tarn__param *tables[] = {weights->source_table, weights->target_table, weights->output_table};
  const tarn__bands *bands[] = {&weights->source_bands, &weights->target_bands, &weights->output_bands};
  for (int add = 0; add < 2; add++)
    for (int i = 0; i < 3; i++) {
      if (tables[i]) tables[i]->uses = add ? tables[i]->uses + 1 : 0;
      for (int k = 0; k < TARN__BAND_PARAMS; k++) {
        tarn__param *param = tarn__bands_param(bands[i], k);
        if (param && param != tables[i]) param->uses = add ? param->uses + 1 : 0;
      }
    }
}

static tarn_status declare_weights(tarn__model *model, tarn__declare *declare) {
  const tarn__task *task = tarn__config_task(model->config);
  const tarn__task_site site = {declare,
                                &model->config->model,
                                &model->config->head,
                                &model->config->image,
                                &model->config->levenshtein,
                                model->source_vocab,
                                model->target_vocab};
  const int64_t d_model = declare->d_model;
  declare->prefix = "embeddings";
  declare->role = TARN__ROLE_EMBEDDINGS;
  if (model->config->model.embedding_size > 0) declare->d_model = model->config->model.embedding_size;
  TARN_TRY(task->declare_tables(&site, &model->weights));
  tarn__bands_share(&model->weights);
  count_tables(&model->weights);
  TARN_TRY(declare_positions(model, declare));
  TARN_TRY(declare_sum(model, declare));
  declare->d_model = d_model;
  declare_projections(&model->weights, declare, d_model);
  TARN_TRY(declare->status);
  declare->prefix = "output";
  declare->role = TARN__ROLE_OUTPUT;
  return task->declare_output(&site, &model->weights);
}

// Residual branches of a stack, including layers that layers_to_keep removes, so that weights trained without that key
// can be used.
static int64_t branches_of(const tarn_config *config, const tarn__task_stack *what) {
  const tarn_stack *stack = tarn__config_stack(config, what->id);
  int64_t branches = 0;
  for (int32_t i = 0; i < stack->depth; i++) {
    const tarn_kind *kind = &config->kinds[stack->pattern[i].kind];
    const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
    branches += !mixer->empty + (what->attends && mixer->attends && !mixer->beside) + (kind->channel.part != NULL);
  }
  return branches;
}

static tarn_status declare_stacks(tarn__model *model, tarn__declare *declare) {
  const tarn__task *task = tarn__config_task(model->config);
  set_ranges ranges[TARN__STACKS] = {NULL};
  declare->branches = 0;
  for (int s = 0; s < task->stack_count; s++) declare->branches += branches_of(model->config, &task->stacks[s]);
  for (int s = 0; s < task->stack_count; s++) {
    const tarn__task_stack *what = &task->stacks[s];
    const tarn__task_stack *beside = task->stack_count > 1 ? &task->stacks[1 - s] : NULL;
    const tarn__deepnorm deep =
        tarn__deepnorm_of(tarn__config_stack(model->config, what->id)->depth,
                          beside ? tarn__config_stack(model->config, beside->id)->depth : 0, what->attends);
    declare->attends = what->attends;
    declare->causal = what->causal;
    declare->beta = deep.beta;
    (what->id == TARN__STACK_ENCODER ? &model->encoder : &model->decoder)->skip = deep.alpha;
    TARN_TRY(declare_stack(model, declare, ranges, what->id));
  }
  return TARN_STATUS_OK;
}

static void set_sights(tarn__model *model) {
  model->sights[TARN__FAR] = 1;
  for (int l = 0; l < model->decoder.count; l++) {
    const int64_t rows = tarn__layer_history(model->decoder.layers[l].weights);
    if (rows > model->sights[TARN__FAR]) model->sights[TARN__FAR] = rows;
  }
  for (int l = 0; l < model->decoder.count; l++) {
    tarn__model_layer *layer = &model->decoder.layers[l];
    const int64_t rows = tarn__layer_history(layer->weights);
    if (rows == model->sights[TARN__FAR] || tarn__layer_cache_width(layer->weights, model->config->model.d_model) == 0)
      continue;
    layer->sight = TARN__NEAR;
    if (rows > model->sights[TARN__NEAR]) model->sights[TARN__NEAR] = rows;
  }
}

static tarn_status declare_all(tarn__model *model, tarn__index *names, tarn__index *helper_names) {
  size_t capacity = 0, helper_capacity = 0;
  tarn__declare declare = {.prefix = "",
                           .d_model = model->config->model.d_model,
                           .position = &model->config->model.positions,
                           .arena = &model->arena,
                           .params = {&model->params, &model->param_count, &capacity, names}};
  if (model->training)
    declare.helpers = (tarn__param_list){&model->helpers, &model->helper_count, &helper_capacity, helper_names};
  TARN_TRY(declare_weights(model, &declare));
  TARN_TRY(declare_stacks(model, &declare));
  set_sights(model);
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    param->dtype = model->dtype;
    bool plain = param->vector || param->init.kind == TARN__INIT_SIGNS;
    if (model->dtype == TARN__BF16 && plain) param->dtype = TARN__F32;
  }
  return TARN_STATUS_OK;
}

static tarn_status declare_model(tarn__model *model) {
  tarn__index names = {0}, helper_names = {0};
  const tarn_status status = declare_all(model, &names, &helper_names);
  tarn__index_close(&names);
  tarn__index_close(&helper_names);
  return status;
}

tarn__fp32 tarn__model_products(const tarn_config_train *train) {
  static const tarn__fp32 products[TARN_FP32_COUNT] = {[TARN_FP32_EXACT] = TARN__FP32_EXACT,
                                                       [TARN_FP32_SPLIT6] = TARN__FP32_SPLIT6,
                                                       [TARN_FP32_SPLIT3] = TARN__FP32_SPLIT3,
                                                       [TARN_FP32_TF32] = TARN__FP32_TF32};
  return products[train->fp32];
}

static tarn_status check_products(const tarn__model *model) {
  const tarn__device *device = model->device;
  const char *lacks = tarn__device_fp32_lacks(device, model->fp32);
  if (!lacks) return TARN_STATUS_OK;
  return tarn__config_fail(model->config, TARN_STATUS_UNSUPPORTED, "train.fp32",
                           "%s needs %s, and the device %s computes with %s; set it to exact",
                           tarn_fp32_name(model->config->train.fp32), lacks, device->name,
                           tarn__device_variant(device));
}

tarn_status tarn__model_open(tarn__model **out, const tarn_config *config, int64_t source_vocab, int64_t target_vocab,
                             tarn__dtype dtype, bool training) {
  *out = NULL;
  TARN_REQUIRE(source_vocab > 1 && target_vocab > 1, USAGE, "a vocabulary of less than 2 tokens cannot be modelled");
  TARN_REQUIRE(config->model.decoder_start < target_vocab, USAGE,
               "model.decoder_start: %lld is no token of a vocabulary of %lld", (long long)config->model.decoder_start,
               (long long)target_vocab);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__model)));
  tarn__model *model = memory;
  model->config = config;
  model->source_vocab = source_vocab;
  model->target_vocab = target_vocab;
  model->dtype = dtype;
  model->training = training;
  model->fp32 = training ? tarn__model_products(&config->train) : TARN__FP32_EXACT;
  tarn_status status = tarn__device_default(&model->device, dtype);
  // The description names the precision of training, an option that of other commands.
  if (status == TARN_STATUS_UNSUPPORTED && training)
    status = tarn__config_fail(config, status, "train.precision", "%s", tarn_error_message());
  model->no_table = (tarn__param){.name = "no table", .cols = config->model.d_model, .uses = 1, .dtype = dtype};
  if (status == TARN_STATUS_OK) status = check_products(model);
  if (status == TARN_STATUS_OK) status = declare_model(model);
  if (status == TARN_STATUS_OK) status = tarn__model_find_rounded(model);
  if (status != TARN_STATUS_OK) {
    tarn__model_close(&model);
    return status;
  }
  *out = model;
  return TARN_STATUS_OK;
}

bool tarn__model_by_position(const tarn__model *model) {
  for (int id = 0; id < TARN__STACKS; id++) {
    const tarn_stack *layers = tarn__config_stack(model->config, (tarn__stack_id)id);
    for (int i = 0; i < layers->count; i++) {
      const tarn_kind *kind = &model->config->kinds[layers->layers[i].kind];
      const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
      if (mixer->by_position && mixer->by_position(kind->mixer.keys)) return true;
    }
  }
  return false;
}

int64_t tarn__model_longest(const tarn__model *model) {
  const tarn_config_model *config = &model->config->model;
  bool bounded = tarn__position_of(&config->positions)->bounded || tarn__model_by_position(model);
  for (int32_t i = 0; i < model->config->kind_count; i++) bounded |= tarn__mixer_of(&model->config->kinds[i])->bounded;
  return bounded ? config->max_length : INT32_MAX / 2;
}

void tarn__model_close(tarn__model **model) {
  tarn__model *m = *model;
  if (!m) return;
  for (int k = 0; k < TARN__MEMORY_KINDS; k++)
    if (m->storage[k]) tarn__device_free(m->device, m->storage[k]);
  tarn__free(m->params);
  tarn__free(m->helpers);
  tarn__arena_close(&m->arena);
  tarn__free(m);
  *model = NULL;
}

// Independent of the storage. Trained parameters are never stored as entries.
static size_t count_of(const tarn__param *param) { return (size_t)(param->rows * param->cols); }

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// Whether it has its own master copy.
static bool has_master(const tarn__model *model, const tarn__param *param) {
  if (model->shares_optimiser) return false;
  return model->training && param->trained && param->dtype == TARN__BF16;
}

// Bytes of a parameter's value and master copy together, and of its gradient.
static size_t value_bytes(const tarn__model *model, const tarn__param *param) {
  if (param->mapped.value || param->mapped.rounded) return 0;
  size_t bytes = aligned(tarn__param_value_bytes(param));
  return bytes + (has_master(model, param) ? aligned(count_of(param) * sizeof(float)) : 0);
}

static size_t gradient_bytes(const tarn__model *model, const tarn__param *param) {
  if (!model->training || !param->trained || param->training.planned) return 0;
  return aligned(count_of(param) * (param->dtype == TARN__F64 ? sizeof(double) : sizeof(float)));
}

// Bytes for the list of used rows of a table that only embeddings read (param.h); 0 for all other parameters.
static size_t used_bytes(const tarn__model *model, const tarn__param *param) {
  bool read = tarn__weights_look_up(&model->weights, param) || param->out == 1;
  bool known = read && !tarn__weights_predict(&model->weights, param) && param->dtype != TARN__F64;
  return known && model->training && param->trained ? aligned((size_t)param->rows) : 0;
}

bool tarn__model_sums(const tarn__model *model, const tarn__param *param) {
  const bool set = param->role == TARN__ROLE_LAYER && param->stack == TARN__STACK_ENCODER;
  return model->training && model->config->train.autofreeze > 0 && param->trained && set;
}

void tarn__model_update_at_once(tarn__model *model) {
  model->updates_at_once = true;
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.planned = model->params[i]->trained;
}

size_t tarn__model_sum_bytes(const tarn__model *model, const tarn__param *param) {
  return tarn__model_sums(model, param) ? aligned(count_of(param) * sizeof(float)) : 0;
}

// Vectors are too few to be worth a loss, and a tenth of a percent of the memory.
tarn__moments tarn__model_moments(const tarn__model *model, const tarn__param *param) {
  const tarn_moments moments = model->config->train.moments;
  if (moments == TARN_MOMENTS_FP8) return param->vector ? TARN__MOMENTS_F32 : TARN__MOMENTS_F8;
  return moments == TARN_MOMENTS_BF16 ? TARN__MOMENTS_BF16 : TARN__MOMENTS_F32;
}

size_t tarn__model_moment_bytes(const tarn__model *model, const tarn__param *param) {
  return aligned(tarn__moment_bytes(tarn__model_moments(model, param), count_of(param)));
}

static bool stack_refreshes(const tarn__model_stack *stack) {
  bool any = false;
  for (int i = 0; i < stack->count; i++) {
    const tarn_backskip *how = &stack->layers[i].weights->kind->backskip;
    any |= how->method != TARN_BACKSKIP_NONE && how->refresh > 0;
  }
  return any;
}

bool tarn__model_refreshes(const tarn__model *model) {
  return stack_refreshes(&model->encoder) || stack_refreshes(&model->decoder);
}

void tarn__model_measure(const tarn__model *model, tarn__model_size *size) {
  *size = (tarn__model_size){0};
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    const tarn__param *param = tarn__model_param(model, i);
    int64_t count = (int64_t)count_of(param);
    if (i < model->param_count) *(param->trained ? &size->trained : &size->frozen) += count;
    *(param->trained ? &size->trained_bytes : &size->frozen_bytes) += value_bytes(model, param);
    size->gradient_bytes += gradient_bytes(model, param) + used_bytes(model, param);
    if (model->training && param->trained && !model->shares_optimiser)
      size->optimiser_bytes += 2 * tarn__model_moment_bytes(model, param) + tarn__model_sum_bytes(model, param);
    size->shared_uses += (param->uses - 1) * count;
    const bool beside = param->role == TARN__ROLE_EMBEDDINGS || param->role == TARN__ROLE_OUTPUT_TABLE ||
                        param->role == TARN__ROLE_OUTPUT;
    if (!beside) size->shared_layers += (param->uses - 1) * count;
  }
}

tarn_status tarn__model_allocate(tarn__model *model) {
  tarn__model_size size;
  tarn__model_measure(model, &size);
  const size_t bytes[] = {[TARN__MEMORY_TRAINED] = size.trained_bytes,
                          [TARN__MEMORY_FROZEN] = size.frozen_bytes,
                          [TARN__MEMORY_GRADIENT] = size.gradient_bytes};
  for (int k = 0; k < (int)(sizeof bytes / sizeof *bytes); k++)
    TARN_TRY(tarn__device_allocate(model->device, &model->storage[k], (tarn__memory_kind)k, bytes[k], 1));
  char *trained = model->storage[TARN__MEMORY_TRAINED];
  char *frozen = model->storage[TARN__MEMORY_FROZEN];
  char *gradient = model->storage[TARN__MEMORY_GRADIENT];
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    char **from = param->trained ? &trained : &frozen;
    param->device = model->device;
    if (param->mapped.value || param->mapped.rounded) {
      param->value = (void *)(uintptr_t)param->mapped.value;  // is only read
      continue;
    }
    param->value = *from;
    *from += aligned(tarn__param_value_bytes(param));
    if (has_master(model, param)) {
      param->training.master = (float *)(void *)*from;
      *from += aligned(count_of(param) * sizeof(float));
    } else if (model->training && param->trained && param->dtype == TARN__F32) {
      param->training.master = param->value;
    }
    if (gradient_bytes(model, param)) {
      param->training.grad = gradient;
      gradient += gradient_bytes(model, param);
    }
    if (used_bytes(model, param)) {
      param->training.used_rows = (uint8_t *)gradient;
      gradient += used_bytes(model, param);
    }
  }
  return TARN_STATUS_OK;
}

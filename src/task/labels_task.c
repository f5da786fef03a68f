// Classification and regression: the label of a sentence, or of two, from what a body makes of it, which is an encoder
// alone or a decoder. The head is that of RoBERTa (Liu et al. 2019): dropout, a layer with tanh where head.hidden asks
// for one, dropout, and the classes or the number.
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/agreement.h"
#include "task/labelled.h"
#include "task/next_token.h"

static bool is_decoder(const tarn_config *config) { return config->model.architecture == TARN_ARCHITECTURE_DECODER; }

// A sentence's token that has seen all of it: of a decoder the last one.
static tarn_status resolve_pool(tarn_config *config, const tarn__task_keys *keys) {
  tarn_pool *pool = &config->head.pool;
  if (*pool == TARN_POOL_COUNT) *pool = is_decoder(config) ? TARN_POOL_LAST : TARN_POOL_CLS;
  if (is_decoder(config) && *pool == TARN_POOL_CLS)
    return keys->fail(keys->root, "head.pool", "the first token of a decoder sees no other one; choose last or mean");
  if (!is_decoder(config) && *pool == TARN_POOL_LAST)
    return keys->fail(keys->root, "head.pool", "is for a decoder; choose cls or mean");
  return TARN_STATUS_OK;
}

static tarn_status resolve_embeddings(tarn_config *config, const tarn__task_keys *keys) {
  tarn_config_model *model = &config->model;
  const tarn_embeddings tied = is_decoder(config) ? TARN_EMBEDDINGS_DECODER : TARN_EMBEDDINGS_ENCODER_OUTPUT;
  const tarn_frozen_embeddings frozen =
      is_decoder(config) ? TARN_FROZEN_EMBEDDINGS_DECODER : TARN_FROZEN_EMBEDDINGS_ENCODER;
  if (!keys->given(keys->root, "model.embeddings")) model->embeddings = tied;
  if (model->embeddings != tied && model->embeddings != TARN_EMBEDDINGS_NONE)
    return keys->fail(keys->root, "model.embeddings",
                      "no words are predicted; choose none, or what the body has: decoder of a language model, "
                      "encoder_output of an encoder");
  if (model->frozen_embeddings != TARN_FROZEN_EMBEDDINGS_NONE && model->frozen_embeddings != frozen)
    return keys->fail(keys->root, "model.frozen_embeddings", "there is one stack; name it, or choose none");
  if (model->output_rank > 0) return keys->fail(keys->root, "model.output_rank", "no words are predicted");
  if (model->output_bias && keys->given(keys->root, "model.output_bias"))
    return keys->fail(keys->root, "model.output_bias", "no words are predicted; the head always has a bias");
  return TARN_STATUS_OK;
}

// Classes of equal names could not be told apart.
static tarn_status check_names(const tarn_config *config, const tarn__task_keys *keys) {
  tarn__label_names names;
  void *memory = NULL;
  TARN_TRY(tarn__label_names_open(&names, config->head.labels));
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)names.count, sizeof(int32_t));
  int32_t *places = memory;
  if (status == TARN_STATUS_OK)
    status =
        tarn__label_places(places, config->head.labels, (const char *const *)(const void *)names.names, names.count);
  for (int32_t i = 0; i < names.count && status == TARN_STATUS_OK; i++) {
    char text[TARN__TASK_TEXT];
    if (places[i] == i) continue;
    snprintf(text, sizeof text, "classes %d and %d are both called \"%.60s\"", (int)places[i] + 1, (int)i + 1,
             names.names[i]);
    status = keys->fail(keys->root, "head.labels", text);
  }
  tarn__free(memory);
  tarn__label_names_close(&names);
  return status;
}

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  const tarn_config_data *data = &config->data;
  const bool numbers = config->model.task == TARN__LEARNS_REGRESSION;
  TARN_TRY(resolve_pool(config, keys));
  if (isnan(config->head.dropout)) config->head.dropout = config->model.dropout;
  TARN_TRY(resolve_embeddings(config, keys));
  if (config->train.cache_frozen)
    return keys->fail(keys->root, "train.cache_frozen", "is for the encoder of a translation model");
  if (data->vocab && data->target_vocab && !tarn__file_same(data->vocab, data->target_vocab))
    return keys->fail(keys->root, "data.target_vocab",
                      "there is one vocabulary; leave it out, or give that of data.vocab");
  if (data->valid_reference) return keys->fail(keys->root, "data.valid_reference", "labels stand in the data");
  if (numbers && config->head.labels) return keys->fail(keys->root, "head.labels", "regression has no classes");
  if (config->head.labels) TARN_TRY(check_names(config, keys));
  if (numbers && config->train.label_smoothing > 0 && keys->given(keys->root, "train.label_smoothing"))
    return keys->fail(keys->root, "train.label_smoothing", "is for classes; regression has numbers");
  if (numbers) config->train.label_smoothing = 0;
  if (config->valid.metric == TARN__METRIC_COUNT)
    config->valid.metric = numbers ? TARN__METRIC_PEARSON : TARN__METRIC_ACCURACY;
  return TARN_STATUS_OK;
}

// Named as a body's table is, which shares it with its words or not.
static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  const bool tied = site->model->embeddings != TARN_EMBEDDINGS_NONE;
  const bool trained = site->model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE;
  const bool classes = tied && site->model->adaptive_softmax_cutoffs > 0;
  return tarn__next_token_table(&weights->target_table, &weights->target_bands, site, tied ? "weight" : "input.weight",
                                site->target_vocab, tied || trained, classes);
}

static tarn_status declare_head(const tarn__task_site *site, tarn__task_weights *weights, int64_t outputs) {
  tarn__declare *declare = site->declare;
  const int64_t d = declare->d_model, hidden = site->head->hidden, width = hidden > 0 ? hidden : d;
  // As BERT and RoBERTa draw them.
  const tarn__init normal = {TARN__INIT_NORMAL, 0.02, 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  if (hidden > 0) {
    weights->dense.weight = tarn__declare_param(declare, "dense.weight", hidden, d, true, normal);
    weights->dense.bias = tarn__declare_param(declare, "dense.bias", 1, hidden, true, zero);
  }
  weights->output_table = tarn__declare_param(declare, "weight", outputs, width, true, normal);
  weights->output_bias = tarn__declare_param(declare, "bias", 1, outputs, true, zero);
  weights->dropout = site->head->dropout;
  weights->pool = site->head->pool;
  return declare->status;
}

static tarn_status declare_classes(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, site->head->labels));
  const int32_t count = names.count;
  tarn__label_names_close(&names);
  TARN_REQUIRE(
      count >= 2, USAGE,
      "head.labels: %d classes; name two at least (\"negative|positive\"), or prepare data.train, which is asked "
      "for them",
      count);
  return declare_head(site, weights, count);
}

static tarn_status declare_number(const tarn__task_site *site, tarn__task_weights *weights) {
  return declare_head(site, weights, 1);
}

// A row a sentence, [n, d_model or head.hidden].
static tarn__tensor *head(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__task_weights *weights = from->weights;
  const tarn__batch *batch = from->batch;
  graph->label = "output";
  tarn__tensor *x;
  if (weights->pool == TARN_POOL_MEAN)
    x = tarn__sentence_mean(graph, from->states, from->offsets);
  else
    x = tarn__select_rows(graph, from->states, tarn__graph_input(graph, batch->predictions, batch->selected, "pooled"));
  if (weights->dense.weight) {
    x = tarn__dropout_apply(graph, x, weights->dropout);
    x = tarn__tanh(graph, tarn__linear(graph, x, weights->dense.weight, weights->dense.bias, TARN__IDENTITY));
  }
  return tarn__dropout_apply(graph, x, weights->dropout);
}

// The output layer of a model whose words are the classes. Answers are log-probabilities.
static tarn__tensor *class_loss(tarn__graph *graph, const tarn__task_loss *from) {
  tarn__tensor *x = head(graph, from);
  tarn__param *table = from->weights->output_table, *bias = from->weights->output_bias;
  tarn__tensor *ids = tarn__graph_input(graph, from->batch->predictions, from->batch->targets, "labels");
  if (from->answers) *from->answers = tarn__output_log_probabilities(graph, x, table, bias);
  return tarn__output_loss(graph, x, table, bias, ids, from->smoothing, from->grad_scale);
}

static tarn__tensor *number_loss(tarn__graph *graph, const tarn__task_loss *from) {
  tarn__tensor *x = head(graph, from), *numbers;
  // A graph's inputs are integers, so the bits of the numbers go in as some.
  tarn__tensor *values =
      tarn__graph_input(graph, from->batch->predictions, (const int32_t *)(const void *)from->batch->values, "numbers");
  tarn__tensor *loss = tarn__squared_error(graph, x, from->weights->output_table, from->weights->output_bias, values,
                                           from->grad_scale, &numbers);
  if (from->answers) *from->answers = numbers;
  return loss;
}

// A classifier that knows nothing has the logarithm of the number of classes, of which there are at most 10000.
static bool classes_diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)words;
  if (!(value >= 1000.0)) return false;
  snprintf(is, TARN__TASK_TEXT, "%.4g nats a sentence, where equal chances for all classes have less than 10,", value);
  return true;
}

// Of numbers nothing is known; what is not finite ends the training.
static bool numbers_diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)is;
  (void)value;
  (void)words;
  return false;
}

#define ENCODER_STACK                                                              \
  .architecture = TARN_ARCHITECTURE_ENCODER, .segments = true,                     \
  .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_ENCODER_OUTPUT, \
  .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_TARGET}},              \
  .other_stacks = "an encoder has no decoder; leave out the section decoder"
#define DECODER_STACK                                                                                                  \
  .architecture = TARN_ARCHITECTURE_DECODER, .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_DECODER, \
  .stacks = {{.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .causal = true}},                                  \
  .other_stacks = "a decoder has no encoder; leave out the section encoder"
#define LABELLED                                                                                           \
  .stack_count = 1, .head = true, .labelled = true, .uses = 1u << TARN__USE_CLASSIFY,                      \
  .sections = 1u << TARN__TASK_HEAD, .declare_tables = declare_tables, .first = tarn__labelled_first,      \
  .pooled_input = head, .batches = tarn__labelled_batches, .most_predictions = tarn__labelled_predictions, \
  .count = tarn__labelled_count, .tally = tarn__labelled_tally, .resolve = resolve
#define CLASSES                                                                                                        \
  .name = "classification", .model = "a classifier",                                                                   \
  .models = "classifiers (model.task: classification or regression)", .task = TARN__LEARNS_CLASSIFICATION,             \
  .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_CLASSES, .declare_output = declare_classes, \
  .loss = class_loss, .watched = TARN__METRIC_NLL, .diverged = classes_diverged
#define NUMBERS                                                                                        \
  .name = "regression", .model = "a regression model",                                                 \
  .models = "classifiers (model.task: classification or regression)", .task = TARN__LEARNS_REGRESSION, \
  .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_SQUARES | 1u << TARN__KEPT_NUMBERS,                \
  .declare_output = declare_number, .loss = number_loss, .watched = TARN__METRIC_MSE, .diverged = numbers_diverged

static const tarn__task classify_encoder = {CLASSES, LABELLED, ENCODER_STACK};
static const tarn__task classify_decoder = {CLASSES, LABELLED, DECODER_STACK};
static const tarn__task regress_encoder = {NUMBERS, LABELLED, ENCODER_STACK};
static const tarn__task regress_decoder = {NUMBERS, LABELLED, DECODER_STACK};
const tarn__task *const tarn__tasks_classification[] = {&classify_encoder, &classify_decoder, NULL};
const tarn__task *const tarn__tasks_regression[] = {&regress_encoder, &regress_decoder, NULL};

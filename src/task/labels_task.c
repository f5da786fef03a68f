// Classification and regression: the label of a sentence or sentence pair, from the output of a body, which is an
// encoder alone or a decoder.
#include <stdio.h>

#include "task/labelled.h"

static bool is_decoder(const tarn_config *config) { return config->model.architecture == TARN_ARCHITECTURE_DECODER; }

static const tarn_verb verb = {
    .word = "classify",
    .doing = "classifying",
    .summary = "Print the labels of sentences, or of pairs of sentences, with their probabilities.",
    .models = "a classifier or a regression model"};

// Chooses a token that has seen the whole sentence: for a decoder the last one.
static tarn_status resolve_pool(tarn_config *config, const tarn__task_keys *keys) {
  tarn_pool *pool = &config->head.pool;
  if (*pool == TARN_POOL_COUNT) *pool = is_decoder(config) ? TARN_POOL_LAST : TARN_POOL_CLS;
  if (is_decoder(config) && *pool == TARN_POOL_CLS)
    return keys->fail(keys->root, "head.pool", "the first token of a decoder sees no other one; choose last or mean");
  if (!is_decoder(config) && *pool == TARN_POOL_LAST)
    return keys->fail(keys->root, "head.pool", "is for a decoder; choose cls or mean");
  if (*pool == TARN_POOL_FIRST)
    return keys->fail(keys->root, "head.pool",
                      is_decoder(config) ? "is for words; choose last or mean" : "is for words; choose cls or mean");
  return TARN_STATUS_OK;
}

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  const bool numbers = config->model.task == TARN__LEARNS_REGRESSION;
  TARN_TRY(resolve_pool(config, keys));
  if (numbers && config->head.labels) return keys->fail(keys->root, "head.labels", "regression has no classes");
  TARN_TRY(tarn__labelled_resolve(config, keys));
  if (numbers && config->train.label_smoothing > 0 && keys->given(keys->root, "train.label_smoothing"))
    return keys->fail(keys->root, "train.label_smoothing", "is for classes; regression has numbers");
  if (numbers) config->train.label_smoothing = 0;
  if (config->valid.metric == TARN__METRIC_COUNT)
    config->valid.metric = numbers ? TARN__METRIC_PEARSON : TARN__METRIC_ACCURACY;
  return TARN_STATUS_OK;
}

static tarn_status declare_number(const tarn__task_site *site, tarn__task_weights *weights) {
  return tarn__labelled_outputs(site, weights, 1);
}

static tarn__tensor *number_loss(tarn__graph *graph, const tarn__task_loss *from) {
  tarn__tensor *x = tarn__labelled_pooled(graph, from), *numbers;
  // Inputs of a graph are integers, so the numbers are passed as bit patterns.
  tarn__tensor *values =
      tarn__graph_input(graph, from->batch->predictions, (const int32_t *)(const void *)from->batch->values, "numbers");
  tarn__tensor *loss = tarn__squared_error(graph, x, from->weights->output_table, from->weights->output_bias, values,
                                           from->grad_scale, &numbers);
  if (from->answers) *from->answers = numbers;
  return loss;
}

// A classifier without information has a loss of the logarithm of the number of classes, of which there are at most
// 10000.
static bool classes_diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)words;
  if (!(value >= 1000.0)) return false;
  snprintf(is, TARN__TASK_TEXT, "%.4g nats a sentence, where equal chances for all classes have less than 10,", value);
  return true;
}

// The scale of the numbers is unknown; values that are not finite end training.
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
#define LABELLED                                                                                                      \
  .stack_count = 1, .head = true, .labelled = TARN__LABELLED_SENTENCES, .verb = &verb, .uses = 1u << TARN__USE_LABEL, \
  .sections = 1u << TARN__TASK_HEAD, .declare_tables = tarn__labelled_tables, .first = tarn__labelled_first,          \
  .pooled_input = tarn__labelled_pooled, .batches = tarn__labelled_batches,                                           \
  .most_predictions = tarn__labelled_predictions, .count = tarn__labelled_count, .tally = tarn__labelled_tally,       \
  .resolve = resolve
#define CLASSES                                                                                             \
  .name = "classification", .model = "a classifier",                                                        \
  .models = "classifiers (model.task: classification or regression)", .task = TARN__LEARNS_CLASSIFICATION,  \
  .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_CLASSES,                         \
  .declare_output = tarn__labelled_classes, .loss = tarn__labelled_class_loss, .watched = TARN__METRIC_NLL, \
  .diverged = classes_diverged
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

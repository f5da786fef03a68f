// Masked language modelling: predicts hidden tokens of a text from all surrounding tokens (Devlin et al. 2019), as
// RoBERTa is trained (Liu et al. 2019): masks are redrawn in every epoch, and there is no other objective.
#include <math.h>

#include "base/file.h"
#include "task/bands.h"
#include "task/masks.h"
#include "task/next_token.h"

static tarn_status resolve_embeddings(tarn_config *config, const tarn__task_keys *keys) {
  tarn_config_model *model = &config->model;
  if (!keys->given(keys->root, "model.embeddings")) model->embeddings = TARN_EMBEDDINGS_ENCODER_OUTPUT;
  if (model->embeddings != TARN_EMBEDDINGS_ENCODER_OUTPUT && model->embeddings != TARN_EMBEDDINGS_NONE)
    return keys->fail(keys->root, "model.embeddings", "there is an encoder alone; choose encoder_output or none");
  if (model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_DECODER ||
      model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_BOTH)
    return keys->fail(keys->root, "model.frozen_embeddings", "there is no decoder; choose encoder or none");
  return TARN_STATUS_OK;
}

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  const tarn_config_data *data = &config->data;
  TARN_TRY(resolve_embeddings(config, keys));
  if (config->model.output_rank > 0)
    return keys->fail(keys->root, "model.output_rank", "the head of a masked language model has one matrix of words");
  if (config->masking.random + config->masking.keep > 1.0)
    return keys->fail(keys->root, "masking.keep", "masking.random and masking.keep are more than 1 together");
  if (config->train.cache_frozen)
    return keys->fail(keys->root, "train.cache_frozen", "masks change what the encoder reads in every epoch");
  if (data->vocab && data->target_vocab && !tarn__file_same(data->vocab, data->target_vocab))
    return keys->fail(keys->root, "data.target_vocab",
                      "a masked language model has one vocabulary; leave it out, or give the same file as data.vocab");
  if (data->valid_reference)
    return keys->fail(keys->root, "data.valid_reference", "a masked language model is trained on texts");
  if (config->valid.metric == TARN__METRIC_COUNT) config->valid.metric = TARN__METRIC_NLL;
  return TARN_STATUS_OK;
}

static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  const bool tied = site->model->embeddings == TARN_EMBEDDINGS_ENCODER_OUTPUT;
  const bool trained = tied || site->model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE;
  TARN_TRY(tarn__next_token_table(&weights->target_table, &weights->target_bands, site,
                                  tied ? "weight" : "input.weight", site->target_vocab, trained, tied));
  if (!tied) return tarn__next_token_output(weights, site);
  weights->output_table = weights->target_table;
  return TARN_STATUS_OK;
}

// RoBERTa's lm_head: a layer with GELU and a norm, then the words, each with a bias. As in ALBERT, the input of a
// factorised table is as narrow as the table, without its projection.
static tarn_status declare_output(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__declare *declare = site->declare;
  const int64_t d = declare->d_model, width = weights->output_table->cols;
  const tarn__init normal = {TARN__INIT_NORMAL, 1.0 / sqrt((double)d), 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  weights->dense.weight = tarn__declare_param(declare, "dense.weight", width, d, true, normal);
  weights->dense.bias = tarn__declare_param(declare, "dense.bias", 1, width, true, zero);
  declare->kind = NULL;
  declare->norm = site->model->norm_type;
  declare->d_model = width;
  weights->norm = tarn__declare_norm(declare, "norm");
  declare->d_model = d;
  if (weights->output_bands.count > 0) return tarn__bands_declare_output(weights, site, true);
  weights->output_bias = tarn__declare_param(declare, "bias", 1, site->target_vocab, true, zero);
  return declare->status;
}

static tarn_status first_token(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) {
  (void)config;
  *first = tarn_vocab_special(vocab, TARN_SPECIAL_CLS);
  return TARN_STATUS_OK;
}

static tarn_status form_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                const tarn_vocab *vocab) {
  options->rows = TARN__ROWS_WHOLE;
  options->segments = (int32_t)config->model.segments;
  return tarn__masks_open(&options->finish, &config->masking, shard, vocab, config->data.vocab);
}

static int64_t most_predictions(const tarn_config *config, int64_t rows, int64_t sentences) {
  return tarn__masks_most(&config->masking, rows, sentences);
}

static tarn__tensor *output_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights) {
  graph->label = "output";
  tarn__tensor *x = tarn__linear(graph, states, weights->dense.weight, weights->dense.bias, TARN__GELU);
  return tarn__norm_of(&weights->norm.use)->build(graph, x, NULL, 0.0, &weights->norm).y;
}

// Only masked rows, about a seventh of all, go through the head.
static tarn__tensor *loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__task_weights *weights = from->weights;
  const tarn__batch *batch = from->batch;
  graph->label = "output";
  tarn__tensor *rows = tarn__graph_input(graph, batch->predictions, batch->selected, "masked rows");
  tarn__tensor *x = output_input(graph, tarn__select_rows(graph, from->states, rows), weights);
  tarn__tensor *ids = tarn__graph_input(graph, batch->predictions, batch->targets, "targets");
  const tarn__head head = tarn__head_of(graph, from->states, x, weights);
  if (from->answers) *from->answers = tarn__head_top(graph, &head, 1, 0).ids;
  return tarn__head_loss(graph, &head, ids, from->smoothing, from->grad_scale);
}

// The answers are the most likely words.
static void tally(tarn__task_tally *sums, const tarn__batch *batch, const void *answers) {
  const int32_t *words = answers;
  for (int64_t i = 0; i < batch->predictions; i++) sums->right += words[i] == batch->targets[i];
}

static const tarn__task entry = {
    .name = "masked language model",
    .model = "a masked language model",
    .models = "masked language models (models with an encoder alone)",
    .task = TARN__LEARNS_MASKED_LANGUAGE_MODEL,
    .architecture = TARN_ARCHITECTURE_ENCODER,
    .stack_count = 1,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_TARGET}},
    .other_stacks = "an encoder has no decoder; leave out the section decoder, or choose encoder-decoder",
    .segments = true,
    .head = true,
    .uses = 1u << TARN__USE_SCORE_TEXT,
    .sections = 1u << TARN__TASK_MASKING,
    .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_ENCODER_OUTPUT,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_RIGHT,
    .declare_tables = declare_tables,
    .declare_output = declare_output,
    .output_input = output_input,
    .loss = loss,
    .first = first_token,
    .batches = form_batches,
    .most_predictions = most_predictions,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .tally = tally,
    .resolve = resolve,
};

const tarn__task *const tarn__tasks_masked[] = {&entry, NULL};

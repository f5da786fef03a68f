// Common parts of models with labels, apart from their stacks: embeddings, and the head of RoBERTa (Liu et al. 2019),
// which is dropout, a layer with tanh if head.hidden is set, dropout, and the classes or the number.
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "task/labelled.h"
#include "task/next_token.h"

static bool is_decoder(const tarn_config *config) { return config->model.architecture == TARN_ARCHITECTURE_DECODER; }

tarn_status tarn__labelled_check_embeddings(const tarn_config *config, const tarn__task_keys *keys) {
  const tarn_config_model *model = &config->model;
  const tarn_frozen_embeddings frozen =
      is_decoder(config) ? TARN_FROZEN_EMBEDDINGS_DECODER : TARN_FROZEN_EMBEDDINGS_ENCODER;
  if (model->frozen_embeddings != TARN_FROZEN_EMBEDDINGS_NONE && model->frozen_embeddings != frozen)
    return keys->fail(keys->root, "model.frozen_embeddings", "there is one stack; name it, or choose none");
  if (model->output_rank > 0) return keys->fail(keys->root, "model.output_rank", "no words are predicted");
  if (model->output_bias && keys->given(keys->root, "model.output_bias"))
    return keys->fail(keys->root, "model.output_bias", "no words are predicted; the head always has a bias");
  return TARN_STATUS_OK;
}

static tarn_status resolve_embeddings(tarn_config *config, const tarn__task_keys *keys) {
  tarn_config_model *model = &config->model;
  const tarn_embeddings tied = is_decoder(config) ? TARN_EMBEDDINGS_DECODER : TARN_EMBEDDINGS_ENCODER_OUTPUT;
  if (!keys->given(keys->root, "model.embeddings")) model->embeddings = tied;
  if (model->embeddings != tied && model->embeddings != TARN_EMBEDDINGS_NONE)
    return keys->fail(keys->root, "model.embeddings",
                      "no words are predicted; choose none, or what the body has: decoder of a language model, "
                      "encoder_output of an encoder");
  return tarn__labelled_check_embeddings(config, keys);
}

// Duplicate class names would be ambiguous.
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

tarn_status tarn__labelled_check(tarn_config *config, const tarn__task_keys *keys) {
  if (isnan(config->head.dropout)) config->head.dropout = config->model.dropout;
  if (config->train.cache_frozen)
    return keys->fail(keys->root, "train.cache_frozen", "is for the encoder of a translation model");
  if (config->data.valid_reference) return keys->fail(keys->root, "data.valid_reference", "labels stand in the data");
  return config->head.labels ? check_names(config, keys) : TARN_STATUS_OK;
}

tarn_status tarn__labelled_resolve(tarn_config *config, const tarn__task_keys *keys) {
  const tarn_config_data *data = &config->data;
  TARN_TRY(resolve_embeddings(config, keys));
  if (data->vocab && data->target_vocab && !tarn__file_same(data->vocab, data->target_vocab))
    return keys->fail(keys->root, "data.target_vocab",
                      "there is one vocabulary; leave it out, or give that of data.vocab");
  return tarn__labelled_check(config, keys);
}

// The table has the name it has in the body, whether or not that shares it with its output.
tarn_status tarn__labelled_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  const bool tied = site->model->embeddings != TARN_EMBEDDINGS_NONE;
  const bool trained = site->model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE;
  const bool classes = tied && site->model->adaptive_softmax_cutoffs > 0;
  return tarn__next_token_table(&weights->target_table, &weights->target_bands, site, tied ? "weight" : "input.weight",
                                site->target_vocab, tied || trained, classes);
}

tarn_status tarn__labelled_outputs(const tarn__task_site *site, tarn__task_weights *weights, int64_t outputs) {
  tarn__declare *declare = site->declare;
  const int64_t d = declare->d_model, hidden = site->head->hidden, width = hidden > 0 ? hidden : d;
  // Initialised as in BERT and RoBERTa.
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

tarn_status tarn__labelled_classes(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, site->head->labels));
  const int32_t count = names.count;
  tarn__label_names_close(&names);
  TARN_REQUIRE(
      count >= 2, USAGE,
      "head.labels: %d classes; name two at least (\"negative|positive\"), or prepare data.train, which is asked "
      "for them",
      count);
  return tarn__labelled_outputs(site, weights, count);
}

// The input of the output table, from rows of states.
tarn__tensor *tarn__labelled_input(tarn__graph *graph, tarn__tensor *x, const tarn__task_weights *weights) {
  graph->label = "output";
  if (weights->dense.weight) {
    x = tarn__dropout_apply(graph, x, weights->dropout);
    x = tarn__tanh(graph, tarn__linear(graph, x, weights->dense.weight, weights->dense.bias, TARN__IDENTITY));
  }
  return tarn__dropout_apply(graph, x, weights->dropout);
}

// The rows that represent sentences or words, which differ from those of the batch if the encoder pools them
// (encoder.pool_after).
static tarn__tensor *selected_of(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__batch *batch = from->batch;
  const int32_t *rows = batch->selected;
  if (from->states->rows != batch->target.rows) {
    void *memory = NULL;
    if (from->offsets->host && graph->status == TARN_STATUS_OK)
      graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)from->offsets->cols, sizeof(int32_t));
    rows = memory;
    if (memory) tarn__pooled_rows(memory, from->offsets->host, from->offsets->cols - 1, from->weights->pool);
  }
  return tarn__graph_input(graph, batch->predictions, rows, "pooled");
}

// One row per sentence or word, [n, d_model or head.hidden].
tarn__tensor *tarn__labelled_pooled(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__task_weights *weights = from->weights;
  graph->label = "output";
  tarn__tensor *x;
  if (weights->pool == TARN_POOL_MEAN)
    x = tarn__sentence_mean(graph, from->states, from->offsets);
  else
    x = tarn__select_rows(graph, from->states, selected_of(graph, from));
  return tarn__labelled_input(graph, x, weights);
}

// The output layer of a model whose words are the classes. Answers are log-probabilities.
tarn__tensor *tarn__labelled_class_loss(tarn__graph *graph, const tarn__task_loss *from) {
  tarn__tensor *x = tarn__labelled_pooled(graph, from);
  tarn__param *table = from->weights->output_table, *bias = from->weights->output_bias;
  tarn__tensor *ids = tarn__graph_input(graph, from->batch->predictions, from->batch->targets, "labels");
  if (from->answers) *from->answers = tarn__output_log_probabilities(graph, x, table, bias);
  return tarn__output_loss(graph, x, table, bias, ids, from->smoothing, from->grad_scale);
}

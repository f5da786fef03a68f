// Language modelling: the next token of a text.
#include "base/file.h"
#include "task/next_token.h"
#include "task/task.h"

// Without an encoder there is nothing to share with it, to freeze or to cache in it, and nothing to translate.
static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  static const char no_encoder[] = "there is no encoder; a language model is trained on texts";
  const tarn_config_model *model = &config->model;
  const tarn_config_data *data = &config->data;
  if (model->embeddings != TARN_EMBEDDINGS_DECODER && model->embeddings != TARN_EMBEDDINGS_NONE)
    return keys->fail(keys->root, "model.embeddings", "there is no encoder; choose decoder or none");
  if (model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_ENCODER ||
      model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_BOTH)
    return keys->fail(keys->root, "model.frozen_embeddings", "there is no encoder; choose decoder or none");
  if (config->train.cache_frozen) return keys->fail(keys->root, "train.cache_frozen", no_encoder);
  if (data->vocab && data->target_vocab && !tarn__file_same(data->vocab, data->target_vocab))
    return keys->fail(keys->root, "data.target_vocab",
                      "a language model has one vocabulary; leave it out, or give the same file as data.vocab");
  if (data->valid_reference) return keys->fail(keys->root, "data.valid_reference", no_encoder);
  if (config->valid.bleu && keys->given(keys->root, "valid.bleu"))
    return keys->fail(keys->root, "valid.bleu", "a language model does not translate");
  config->valid.bleu = false;
  if (config->valid.metric == TARN_METRIC_COUNT) config->valid.metric = TARN_METRIC_LOSS;
  return TARN_STATUS_OK;
}

const tarn__task tarn__task_language_model = {
    .name = "language model",
    .model = "a language model",
    .models = "language models (models without an encoder)",
    .architecture = TARN_ARCHITECTURE_DECODER,
    .uses = 1u << TARN__USE_SCORE_TEXT | 1u << TARN__USE_CONTINUE_TEXT,
    .measures = 1u << TARN_METRIC_LOSS | 1u << TARN_METRIC_NLL | 1u << TARN_METRIC_PPL | 1u << TARN_METRIC_BPC,
    .predictions = tarn__next_token_predictions,
    .predictions_ahead = tarn__batcher_targets,
    .blind_nll = tarn__next_token_blind_nll,
    .resolve = resolve,
};

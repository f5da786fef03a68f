// Translation: from the sentences of a source to those of a target.
#include "task/next_token.h"
#include "task/task.h"

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  if (config->valid.metric == TARN_METRIC_COUNT)
    config->valid.metric = config->valid.bleu ? TARN_METRIC_BLEU : TARN_METRIC_LOSS;
  if (config->valid.metric == TARN_METRIC_BLEU && !config->valid.bleu)
    return keys->fail(keys->root, "valid.metric", "bleu needs valid.bleu: yes");
  return TARN_STATUS_OK;
}

const tarn__task tarn__task_translation = {
    .name = "translation",
    .model = "a translation model",
    .models = "translation models (models with an encoder)",
    .architecture = TARN_ARCHITECTURE_ENCODER_DECODER,
    .source = true,
    .uses = 1u << TARN__USE_TRANSLATE,
    .measures = 1u << TARN_METRIC_LOSS | 1u << TARN_METRIC_NLL | 1u << TARN_METRIC_PPL | 1u << TARN_METRIC_BLEU,
    .predictions = tarn__next_token_predictions,
    .predictions_ahead = tarn__batcher_targets,
    .blind_nll = tarn__next_token_blind_nll,
    .resolve = resolve,
};

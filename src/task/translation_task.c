// Translation: from source sentences to target sentences.
#include "task/next_token.h"

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  if (config->valid.metric == TARN__METRIC_COUNT)
    config->valid.metric = config->valid.bleu ? TARN__METRIC_BLEU : TARN__METRIC_NLL;
  if (config->valid.metric == TARN__METRIC_BLEU && !config->valid.bleu)
    return keys->fail(keys->root, "valid.metric", "bleu needs valid.bleu: yes");
  return TARN_STATUS_OK;
}

static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  const tarn_embeddings share = site->model->embeddings;
  const tarn_frozen_embeddings frozen = site->model->frozen_embeddings;
  const bool train_source = frozen == TARN_FROZEN_EMBEDDINGS_NONE || frozen == TARN_FROZEN_EMBEDDINGS_DECODER;
  const bool train_target = frozen == TARN_FROZEN_EMBEDDINGS_NONE || frozen == TARN_FROZEN_EMBEDDINGS_ENCODER;
  const bool source_is_target = share == TARN_EMBEDDINGS_ALL || share == TARN_EMBEDDINGS_ENCODER_DECODER;
  const bool source_is_output = share == TARN_EMBEDDINGS_ALL || share == TARN_EMBEDDINGS_ENCODER_OUTPUT;
  const bool target_is_output = share == TARN_EMBEDDINGS_ALL || share == TARN_EMBEDDINGS_DECODER;
  TARN_REQUIRE((!source_is_target && !source_is_output) || site->source_vocab == site->target_vocab, USAGE,
               "model.embeddings: one matrix for encoder and decoder needs one vocabulary, but the source has %lld "
               "tokens and the target %lld",
               (long long)site->source_vocab, (long long)site->target_vocab);
  *weights = (tarn__task_weights){0};
  TARN_TRY(tarn__next_token_table(&weights->source_table, &weights->source_bands, site,
                                  share == TARN_EMBEDDINGS_ALL ? "weight" : "source.weight", site->source_vocab,
                                  train_source, source_is_output));
  weights->target_table = weights->output_table = weights->source_table;
  weights->target_bands = weights->source_bands;
  if (!source_is_target)
    TARN_TRY(tarn__next_token_table(&weights->target_table, &weights->target_bands, site, "target.weight",
                                    site->target_vocab, train_target, target_is_output));
  if (source_is_output) return TARN_STATUS_OK;
  if (!target_is_output) return tarn__next_token_output(weights, site);
  weights->output_table = weights->target_table;
  return TARN_STATUS_OK;
}

static const tarn__task entry = {
    .name = "translation",
    .model = "a translation model",
    .models = "translation models (models with an encoder and a decoder)",
    .task = TARN__LEARNS_TRANSLATION,
    .architecture = TARN_ARCHITECTURE_ENCODER_DECODER,
    .source = true,
    .label_smoothing = 0.1,
    .stack_count = 2,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_SOURCE, .bottom = true},
               {.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .causal = true, .attends = true}},
    .other_stacks = "encoder-decoder needs encoder.layers, or encoder.place; a language model is a decoder",
    .uses = 1u << TARN__USE_TRANSLATE,
    .embeddings = (1u << TARN_EMBEDDINGS_COUNT) - 1,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_TRANSLATIONS,
    .declare_tables = declare_tables,
    .declare_output = tarn__next_token_declare,
    .output_input = tarn__next_token_input,
    .loss = tarn__next_token_loss,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .resolve = resolve,
};

const tarn__task *const tarn__tasks_translation[] = {&entry, NULL};

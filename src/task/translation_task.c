// Translation: from source sentences to target sentences.
#include <stdio.h>

#include "task/next_token.h"
#include "task/translation.h"

tarn_status tarn__translation_resolve(tarn_config *config, const tarn__task_keys *keys) {
  if (config->valid.metric == TARN__METRIC_COUNT)
    config->valid.metric = config->valid.bleu ? TARN__METRIC_BLEU : TARN__METRIC_NLL;
  if (config->valid.metric == TARN__METRIC_BLEU && !config->valid.bleu)
    return keys->fail(keys->root, "valid.metric", "bleu needs valid.bleu: yes");
  return TARN_STATUS_OK;
}

tarn_status tarn__translation_tables(const tarn__task_site *site, tarn__task_weights *weights) {
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
    .declare_tables = tarn__translation_tables,
    .declare_output = tarn__next_token_declare,
    .output_input = tarn__next_token_input,
    .loss = tarn__next_token_loss,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .resolve = tarn__translation_resolve,
};

// A prefix language model (Liu et al. 2018, Raffel et al. 2020): one stack reads the source, all of which sees itself,
// and then the target.
static bool is_random(const tarn__part *part) {
  for (int i = 0; i < part->option_count; i++)
    if (part->options[i].random) return true;
  return false;
}

static tarn_status check_prefix(const tarn_config *config, const tarn__task_keys *keys) {
  const tarn__position_entry *position = tarn__position_of(&config->model.positions);
  char key[TARN_CONFIG_KIND_NAME + 16];
  if (position->declare || position->bias || position->biases || position->relative || is_random(&position->part))
    return keys->fail(keys->root, "model.positions",
                      "source and target of a decoder alone are one sequence; choose sinusoidal, sinusoidal_paper, "
                      "rotary or none");
  for (int32_t i = 0; i < config->decoder.count; i++) {
    const tarn_kind *kind = &config->kinds[config->decoder.layers[i].kind];
    const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
    snprintf(key, sizeof key, "kinds.%s.mixer", kind->name);
    if (!mixer->prefixes && !mixer->empty)
      return keys->fail(keys->root, key,
                        "of a decoder alone that translates is attention, which lets the source see all of itself, or "
                        "none");
  }
  return TARN_STATUS_OK;
}

static tarn_status resolve_prefix(tarn_config *config, const tarn__task_keys *keys) {
  tarn_embeddings *share = &config->model.embeddings;
  if (!keys->given(keys->root, "model.embeddings")) *share = TARN_EMBEDDINGS_ALL;
  if (*share != TARN_EMBEDDINGS_ALL && *share != TARN_EMBEDDINGS_ENCODER_DECODER)
    return keys->fail(keys->root, "model.embeddings",
                      "source and target of a decoder alone are one sequence of one vocabulary; choose all or "
                      "encoder_decoder");
  TARN_TRY(check_prefix(config, keys));
  return tarn__translation_resolve(config, keys);
}

static const tarn__task prefix_entry = {
    .name = "translation",
    .model = "a decoder-only translation model",
    .models = "translation models of a decoder alone",
    .task = TARN__LEARNS_TRANSLATION,
    .architecture = TARN_ARCHITECTURE_DECODER,
    .named = true,
    .source = true,
    .label_smoothing = 0.1,
    .stack_count = 1,
    .stacks = {{.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .causal = true, .prefix = true}},
    .other_stacks = "a decoder alone has no encoder; leave out the section encoder",
    .uses = 1u << TARN__USE_TRANSLATE,
    .embeddings = 1u << TARN_EMBEDDINGS_ALL | 1u << TARN_EMBEDDINGS_ENCODER_DECODER,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_TRANSLATIONS,
    .declare_tables = tarn__translation_tables,
    .declare_output = tarn__next_token_declare,
    .output_input = tarn__next_token_input,
    .loss = tarn__next_token_loss,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .resolve = resolve_prefix,
};

const tarn__task *const tarn__tasks_translation[] = {&entry, &prefix_entry, NULL};

// Language modelling: the next token of a text.
#include "base/file.h"
#include "base/memory.h"
#include "task/next_token.h"
#include "text/vocab_formats.h"

// Without an encoder nothing can be shared with it, frozen or cached in it, and there is nothing to translate.
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
  if (config->valid.metric == TARN__METRIC_COUNT) config->valid.metric = TARN__METRIC_NLL;
  return TARN_STATUS_OK;
}

static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  const bool tied = site->model->embeddings == TARN_EMBEDDINGS_DECODER;
  const bool trained = tied || site->model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE;
  TARN_TRY(tarn__next_token_table(&weights->target_table, &weights->target_bands, site,
                                  tied ? "weight" : "input.weight", site->target_vocab, trained, tied));
  if (!tied) return tarn__next_token_output(weights, site);
  weights->output_table = weights->target_table;
  return TARN_STATUS_OK;
}

static int64_t count_ends(const int32_t *ids, int64_t length, int32_t eos) {
  int64_t ends = 0;
  for (int64_t i = 0; i < length; i++) ends += ids[i] == eos;
  return ends;
}

// Counts characters and bytes of the sentences that are not skipped, as `tarn score` does: the end of a sentence counts
// as one more. For a stream they are known; none of its windows is skipped.
static tarn_status count_text(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                              const tarn_vocab *vocab) {
  tally->characters = shard->characters;
  tally->bytes = shard->bytes;
  if (shard->continues || !tarn__vocab_is_spelling(vocab)) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)shard->longest_target, sizeof(int32_t)));
  int32_t *ids = memory;
  tarn_vocab_text text = {0};
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < shard->pairs && status == TARN_STATUS_OK; i++) {
    const int64_t length = tarn__shard_target_length(shard, i);
    if (length > config->model.max_length) continue;
    tarn__shard_target(shard, i, ids);
    status = tarn_vocab_decode(vocab, &text, ids, (size_t)length - 1);
    if (status != TARN_STATUS_OK) break;
    const int64_t ends = count_ends(ids, length, shard->target_eos);
    tally->characters += (int64_t)tarn_vocab_characters(text.data, text.length) + ends;
    tally->bytes += (int64_t)text.length + ends;
  }
  tarn_vocab_text_close(&text);
  tarn__free(ids);
  return status;
}

static const tarn__task entry = {
    .name = "language model",
    .model = "a language model",
    .models = "language models (models with a decoder alone)",
    .task = TARN__LEARNS_LANGUAGE_MODEL,
    .architecture = TARN_ARCHITECTURE_DECODER,
    .stack_count = 1,
    .stacks = {{.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .causal = true}},
    .other_stacks = "a decoder has no encoder; leave out the section encoder, or choose encoder-decoder",
    .readout = true,
    .uses = 1u << TARN__USE_SCORE_TEXT | 1u << TARN__USE_CONTINUE_TEXT,
    .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_DECODER,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_TEXT,
    .declare_tables = declare_tables,
    .declare_output = tarn__next_token_declare,
    .output_input = tarn__next_token_input,
    .loss = tarn__next_token_loss,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .count = count_text,
    .resolve = resolve,
};

const tarn__task *const tarn__tasks_language[] = {&entry, NULL};

// Translation by a conditional masked language model (CMLM: Ghazvininejad et al. 2019, arXiv 1904.09324): the decoder
// is not causal and predicts masked tokens of the target from its other tokens and the source; the encoder's output
// predicts the length. It is decoded by mask-predict (decode/mask_engine.c).
//
// Of the n tokens of a target, without its end of sentence, a number uniform in 1 .. n is masked; which ones, and how
// many, is drawn as for masked language models (task/masks.h). The end of sentence is always there, so that the decoder
// reads as many rows as there are tokens and one more. The loss is the sum of the smoothed cross-entropy of the masked
// tokens and of the cross-entropy of the length (task/lengths.h), per masked token; so is the nll.
#include "ops/adaptive.h"
#include "task/head.h"
#include "task/lengths.h"
#include "task/masks.h"
#include "task/next_token.h"
#include "task/translation.h"

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  if (config->model.decoder_start >= 0)
    return keys->fail(keys->root, "model.decoder_start", "the decoder reads the target as it is; leave it out");
  return tarn__translation_resolve(config, keys);
}

static tarn_status declare_output(const tarn__task_site *site, tarn__task_weights *weights) {
  TARN_TRY(tarn__next_token_declare(site, weights));
  return tarn__lengths_declare(site, weights);
}

static tarn_status form_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                const tarn_vocab *vocab) {
  options->rows = TARN__ROWS_WHOLE;
  return tarn__masks_open_any(&options->finish, shard, vocab, config->data.target_vocab);
}

static tarn__tensor *loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__batch *batch = from->batch;
  tarn__tensor *losses[2];
  losses[0] = tarn__lengths_loss(graph, from);
  graph->label = "output";
  tarn__tensor *rows = tarn__graph_input(graph, batch->predictions, batch->selected, "masked rows");
  tarn__tensor *states = tarn__select_rows(graph, from->states, rows);
  const tarn__head head =
      tarn__head_of(graph, states, tarn__next_token_input(graph, states, from->weights), from->weights);
  tarn__tensor *ids = tarn__graph_input(graph, batch->predictions, batch->targets, "targets");
  losses[1] = tarn__head_loss(graph, &head, ids, from->smoothing, from->grad_scale);
  return tarn__loss_sum(graph, losses, 2);
}

static const tarn__task entry = {
    .name = "masked translation",
    .model = "a masked translation model",
    .models = "masked translation models (model.task: masked-translation)",
    .task = TARN__LEARNS_MASKED_TRANSLATION,
    .architecture = TARN_ARCHITECTURE_ENCODER_DECODER,
    .named = true,
    .source = true,
    .head = true,
    .label_smoothing = 0.1,
    .stack_count = 2,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_SOURCE, .bottom = true},
               {.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .attends = true}},
    .other_stacks = "masked translation needs encoder.layers, or encoder.place",
    .uses = 1u << TARN__USE_TRANSLATE,
    .decoding = TARN__DECODING_MASKS,
    .embeddings = (1u << TARN_EMBEDDINGS_COUNT) - 1,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_TRANSLATIONS,
    .declare_tables = tarn__translation_tables,
    .declare_output = declare_output,
    .output_input = tarn__next_token_input,
    .loss = loss,
    .batches = form_batches,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .resolve = resolve,
};

const tarn__task *const tarn__tasks_masked_translation[] = {&entry, NULL};

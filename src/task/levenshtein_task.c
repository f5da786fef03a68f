// Translation by a Levenshtein Transformer (Gu et al. 2019, arXiv 1905.11006): a decoder that is not causal, and three
// policies above it (task/edit_heads.h) that edit a target sentence until they leave it as it is. It is decoded by
// decode/edit_engine.c.
//
// Training imitates an expert (task/edits.h) in a single graph of three passes of the decoder:
//   the token policy reads the roll-in with placeholders, and learns their words;
//   the placeholder policy reads it without, and learns where the expert puts how many;
//   the deletion policy reads what the token policy would have made of it (its most likely words), and learns which of
//   these words the expert deletes; no gradient flows through the choice.
// The loss is the sum of the cross-entropies of all three, that of words smoothed, per placeholder; so is the nll.
#include "ops/adaptive.h"
#include "ops/deletions.h"
#include "task/edit_heads.h"
#include "task/edits.h"
#include "task/head.h"
#include "task/next_token.h"
#include "task/translation.h"

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  if (config->model.adaptive_input_cutoffs > 0)
    return keys->fail(keys->root, "model.adaptive_input_cutoffs",
                      "a Levenshtein Transformer reads words that it chose itself; leave it out");
  if (config->model.adaptive_softmax_cutoffs > 0)
    return keys->fail(keys->root, "model.adaptive_softmax_cutoffs",
                      "a Levenshtein Transformer's token policy has one softmax; leave it out");
  if (config->model.output_mixtures > 0)
    return keys->fail(keys->root, "model.output_mixtures",
                      "a Levenshtein Transformer's token policy has one softmax; leave it out");
  return tarn__translation_resolve(config, keys);
}

static tarn_status declare_output(const tarn__task_site *site, tarn__task_weights *weights) {
  TARN_TRY(tarn__next_token_declare(site, weights));
  return tarn__edit_heads_declare(site, weights);
}

// The end of sentence is both borders.
static tarn_status first_token(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) {
  (void)config;
  *first = tarn_vocab_eos(vocab);
  return TARN_STATUS_OK;
}

static tarn_status form_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                const tarn_vocab *vocab) {
  const int64_t longest = shard->longest_target, most = options->longest;
  options->rows = TARN__ROWS_WHOLE;
  return tarn__edits_open(&options->finish, &config->levenshtein, shard, most > 0 && most < longest ? most : longest,
                          vocab, config->data.target_vocab);
}

// The rows less `each` of every sentence. A graph that is only planned is one for the most sentences, and for fewer of
// them there are more such rows.
static int64_t rows_without(const tarn__packed *packed, int64_t each) {
  return packed->ids ? packed->rows - each * packed->sentences : packed->rows;
}

// A list of rows in the graph's memory.
static tarn__tensor *list_rows(tarn__graph *graph, const tarn__packed *packed, int64_t count,
                               int64_t (*fill)(int32_t *list, const int32_t *offsets, int64_t sentences)) {
  void *memory = NULL;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count, sizeof(int32_t));
  if (memory && packed->ids) fill(memory, packed->offsets, packed->sentences);
  return tarn__graph_input(graph, count, memory, "rows of a policy");
}

static tarn__tensor *placeholder_loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__packed *kept = &from->batch->kept;
  const int64_t gaps = rows_without(kept, 1);
  tarn__tensor *states = from->read(graph, from, kept, NULL);
  tarn__tensor *x = tarn__placeholder_input(graph, states, list_rows(graph, kept, 2 * gaps, tarn__edit_pair_rows));
  tarn__tensor *wanted = tarn__graph_input(graph, gaps, from->batch->gaps, "placeholders");
  return tarn__output_loss(graph, x, from->weights->placeholders, NULL, wanted, 0.0, from->grad_scale);
}

static tarn__tensor *deletion_loss(tarn__graph *graph, const tarn__task_loss *from, tarn__tensor *rows,
                                   tarn__tensor *words, tarn__tensor *truth, int64_t inner) {
  const tarn__packed *target = &from->batch->target;
  tarn__tensor *ids = tarn__graph_input(graph, target->rows, target->ids, "ids");
  const tarn__deletions made =
      tarn__deletions_of(graph, ids, from->offsets, rows, words, truth, inner, target->longest);
  tarn__tensor *states = from->read(graph, from, target, made.filled);
  tarn__tensor *x = tarn__deletion_input(graph, states, list_rows(graph, target, inner, tarn__edit_inner_rows));
  return tarn__output_loss(graph, x, from->weights->deletion, NULL, made.deleted, 0.0, from->grad_scale);
}

static tarn__tensor *loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__batch *batch = from->batch;
  tarn__tensor *losses[3];
  graph->label = "output";
  tarn__tensor *rows = tarn__graph_input(graph, batch->predictions, batch->selected, "placeholders");
  tarn__tensor *states = tarn__select_rows(graph, from->states, rows);
  const tarn__head head =
      tarn__head_of(graph, states, tarn__next_token_input(graph, states, from->weights), from->weights);
  tarn__tensor *truth = tarn__graph_input(graph, batch->predictions, batch->targets, "targets");
  losses[0] = tarn__head_loss(graph, &head, truth, from->smoothing, from->grad_scale);
  tarn__tensor *words = tarn__head_top(graph, &head, 1, 0).ids;
  losses[1] = placeholder_loss(graph, from);
  const int64_t inner = rows_without(&batch->target, 2);
  if (inner == 0) return tarn__loss_sum(graph, losses, 2);
  losses[2] = deletion_loss(graph, from, rows, words, truth, inner);
  return tarn__loss_sum(graph, losses, 3);
}

static const tarn__task entry = {
    .name = "Levenshtein Transformer",
    .model = "a Levenshtein Transformer",
    .models = "Levenshtein Transformers (model.task: levenshtein)",
    .task = TARN__LEARNS_LEVENSHTEIN,
    .architecture = TARN_ARCHITECTURE_ENCODER_DECODER,
    .named = true,
    .source = true,
    .head = true,
    .edits = true,
    .label_smoothing = 0.1,
    .stack_count = 2,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_SOURCE, .bottom = true},
               {.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .attends = true}},
    .other_stacks = "a Levenshtein Transformer needs encoder.layers, or encoder.place",
    .uses = 1u << TARN__USE_TRANSLATE,
    .decoding = TARN__DECODING_EDITS,
    .sections = 1u << TARN__TASK_LEVENSHTEIN,
    .embeddings = (1u << TARN_EMBEDDINGS_COUNT) - 1,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS | 1u << TARN__KEPT_TRANSLATIONS,
    .declare_tables = tarn__translation_tables,
    .declare_output = declare_output,
    .output_input = tarn__next_token_input,
    .loss = loss,
    .first = first_token,
    .batches = form_batches,
    .watched = TARN__METRIC_NLL,
    .diverged = tarn__next_token_diverged,
    .resolve = resolve,
};

const tarn__task *const tarn__tasks_levenshtein[] = {&entry, NULL};

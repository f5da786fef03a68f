// Sequence tagging: a label for each word of a sentence, such as its part of speech or its role in a named entity, from
// the output of an encoder alone or a decoder for the word's first or last token. The head is that of classifiers.
#include <stdio.h>

#include "task/labelled.h"

static const tarn_verb verb = {.word = "tag",
                               .doing = "tagging",
                               .summary = "Print the labels of the words of sentences.",
                               .models = "a tagging model",
                               .words = true};

// A decoder has seen the whole word only at its last token.
static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  tarn_pool *pool = &config->head.pool;
  const bool decoder = config->model.architecture == TARN_ARCHITECTURE_DECODER;
  if (*pool == TARN_POOL_COUNT) *pool = decoder ? TARN_POOL_LAST : TARN_POOL_FIRST;
  if (*pool != TARN_POOL_FIRST && *pool != TARN_POOL_LAST)
    return keys->fail(keys->root, "head.pool", "a token stands for each word; choose first or last");
  TARN_TRY(tarn__labelled_resolve(config, keys));
  if (config->valid.metric == TARN__METRIC_COUNT) config->valid.metric = TARN__METRIC_NLL;
  return TARN_STATUS_OK;
}

// A model without information has a loss of the logarithm of the number of labels, of which there are at most 10000.
static bool diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)words;
  if (!(value >= 1000.0)) return false;
  snprintf(is, TARN__TASK_TEXT, "%.4g nats a word, where equal chances for all labels have less than 10,", value);
  return true;
}

#define TAGGING                                                                                                     \
  .name = "tagging", .model = "a tagging model", .models = "tagging models (model.task: tagging)",                  \
  .task = TARN__LEARNS_TAGGING, .stack_count = 1, .head = true, .labelled = TARN__LABELLED_WORDS, .verb = &verb,    \
  .uses = 1u << TARN__USE_LABEL, .sections = 1u << TARN__TASK_HEAD,                                                 \
  .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORD_CLASSES,                            \
  .declare_tables = tarn__labelled_tables, .declare_output = tarn__labelled_classes,                                \
  .output_input = tarn__labelled_input, .pooled_input = tarn__labelled_pooled, .loss = tarn__labelled_class_loss,   \
  .first = tarn__labelled_first, .batches = tarn__labelled_batches, .most_predictions = tarn__labelled_predictions, \
  .watched = TARN__METRIC_NLL, .diverged = diverged, .count = tarn__labelled_count, .tally = tarn__labelled_tally,  \
  .resolve = resolve

static const tarn__task encoder = {
    TAGGING,
    .architecture = TARN_ARCHITECTURE_ENCODER,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_TARGET}},
    .other_stacks = "an encoder has no decoder; leave out the section decoder",
    .segments = true,
    .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_ENCODER_OUTPUT,
};
static const tarn__task decoder = {
    TAGGING,
    .architecture = TARN_ARCHITECTURE_DECODER,
    .stacks = {{.id = TARN__STACK_DECODER, .side = TARN__SIDE_TARGET, .causal = true}},
    .other_stacks = "a decoder has no encoder; leave out the section encoder",
    .embeddings = 1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_DECODER,
};
const tarn__task *const tarn__tasks_tagging[] = {&encoder, &decoder, NULL};

// The parameters that may be integers when a model translates.
#include "base/memory.h"
#include "config/config_part.h"
#include "model/model.h"
#include "model/stacks.h"
#include "ops/embedding.h"
#include "ops/recurrence.h"
#include "task/bands.h"

// Whether kernels read an input of a node packed, or one row at a time. Only the tables of vocabularies are rounded for
// lookups (pack.c); parts have others, such as the vectors of positions in HyperMixer.
static bool reads_rounded(const tarn__model *model, const tarn__node *node, int input, const tarn__param *param) {
  switch (node->op->id) {
    case TARN__OP_LINEAR:
    case TARN__OP_OUTPUT_LOG_PROBABILITIES:
    case TARN__OP_OUTPUT_TOP:
      return input == 1;
    case TARN__OP_RECURRENCE:
      return input == TARN__RECURRENCE_WEIGHTS || input == TARN__RECURRENCE_WEIGHTS + 1;
    case TARN__OP_RECURRENCE_ROWS:
      return input == TARN__RECURRENCE_ROWS_WEIGHT;
    case TARN__OP_EMBEDDING:
      return input == TARN__EMBEDDING_TABLE && tarn__weights_look_up(&model->weights, param);
    default:
      return false;
  }
}

// A parameter that is read in any other way is not rounded.
static void look_at(const tarn__model *model, const tarn__graph *graph) {
  for (size_t n = 0; n < graph->node_count; n++)
    for (int i = 0; i < TARN__MAX_INPUTS; i++) {
      tarn__tensor *in = graph->nodes[n]->in[i];
      tarn__param *param = in ? tarn__tensor_owner(in)->param : NULL;
      if (param && !reads_rounded(model, graph->nodes[n], i, param)) param->rounds = TARN__ROUNDING_NONE;
    }
}

static const tarn__model_shortcuts WHOLE = {0};

// A step of a decoder that reads whole sentences, with the best words.
static void look_at_whole(const tarn__model *model, tarn__graph *graph, const tarn__packed *text) {
  const tarn__model_whole whole = {.target = *text, .readers = text->offsets, .source = *text};
  tarn__model_build_top(model, graph, tarn__model_build_whole(model, graph, &whole), NULL, 1, 1, 0);
}

// The graphs of one sentence of one token: encoding; a step, with the best words and with all words; and both stacks
// over whole sentences, as `tarn states` reads them.
static tarn_status look_at_all(const tarn__model *model, tarn__graph *graph, tarn__tensor **cross,
                               void *const *caches) {
  const int32_t offsets[] = {0, 1};
  const tarn__packed text = {.sentences = 1, .rows = 1, .longest = 1, .offsets = offsets};
  const tarn__packed *const sides[TARN__SIDES] = {&text, &text};
  tarn__model_step step = {.rows = 1,
                           .self_cache = caches,
                           .histories = {{.count = 1, .cache_rows = 1}, {.count = 1, .cache_rows = 1}},
                           .longest = 1,
                           .positions_end = 1,
                           .cross_cache = caches,
                           .source_rows = 1};
  const bool whole = tarn__task_reads_whole(tarn__config_task(model->config));
  for (int what = 0; what < 4; what++) {
    tarn__model_begin(model, graph, false, 1);
    if (what == 0) tarn__model_build_encode(model, graph, &text, cross);
    if (what == 1)
      tarn__model_build_stacks(model, graph, tarn__config_task(model->config)->stack_count, sides, &WHOLE, NULL);
    step.best = what == 2;
    if (what >= 2 && whole)
      look_at_whole(model, graph, &text);
    else if (what >= 2)
      tarn__model_build_step(model, graph, &step);
    TARN_TRY(graph->status);
    look_at(model, graph);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__model_find_rounded(tarn__model *model) {
  const bool translates = tarn__config_task(model->config)->uses >> TARN__USE_TRANSLATE & 1u;
  // Decoding itself rejects models that cannot be decoded.
  if (model->training || !translates || tarn__config_check_decoding(model->config) != TARN_STATUS_OK)
    return TARN_STATUS_OK;
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    const bool can = param->rows > 1 && param->entries == 0 && param->init.kind != TARN__INIT_SIGNS &&
                     param != model->source_positions && param != model->target_positions && param != model->segments;
    param->rounds = can ? tarn__model_rounding(model, param, TARN__ROUNDING_INT4) : TARN__ROUNDING_NONE;
  }
  void *cross, *caches;  // without memory: the graphs are not run
  const size_t layers = (size_t)model->decoder.count;
  TARN_TRY(tarn__alloc(&cross, TARN__MEMORY_OTHER, layers, sizeof(tarn__tensor *)));
  tarn_status status = tarn__alloc(&caches, TARN__MEMORY_OTHER, layers, sizeof(void *));
  tarn__graph graph = {0};
  if (status == TARN_STATUS_OK) status = look_at_all(model, &graph, cross, caches);
  tarn__graph_close(&graph);
  tarn__free(caches);
  tarn__free(cross);
  return status;
}

// The parameters that may be integers when a model is used.
#include "base/memory.h"
#include "config/config_part.h"
#include "model/model.h"
#include "model/stacks.h"
#include "ops/embedding.h"
#include "ops/output_mixture.h"
#include "ops/recurrence.h"
#include "task/bands.h"

// Whether kernels read an input of a node packed, or one row at a time. Only the tables of vocabularies are rounded for
// lookups (pack.c); parts have others, such as the vectors of positions in HyperMixer.
static bool reads_rounded(const tarn__model *model, const tarn__node *node, int input, const tarn__param *param) {
  switch (node->op->id) {
    case TARN__OP_LINEAR:
    case TARN__OP_OUTPUT_LOG_PROBABILITIES:
    case TARN__OP_OUTPUT_LOSS:
    case TARN__OP_OUTPUT_TOP:
      return input == 1;
    case TARN__OP_OUTPUT_MIXTURE:
      return input == TARN__MIXTURE_TABLE;
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

// The graphs that uses of a model run.
typedef enum look {
  LOOK_STACKS,      // whole sentences, as `tarn states` reads them
  LOOK_ENCODE,      // of a translation
  LOOK_BEST_WORDS,  // a step of decoding
  LOOK_ALL_WORDS,
  LOOK_SCORES,
  LOOK_LABELS,
  LOOKS
} look;

static bool is_run(const tarn__model *model, look what) {
  const unsigned translate = 1u << TARN__USE_TRANSLATE, next = 1u << TARN__USE_CONTINUE_TEXT;
  const unsigned uses[LOOKS] = {[LOOK_STACKS] = ~0u,
                                [LOOK_ENCODE] = translate,
                                [LOOK_BEST_WORDS] = translate | next,
                                [LOOK_ALL_WORDS] = translate | next,
                                [LOOK_SCORES] = 1u << TARN__USE_SCORE_TEXT,
                                [LOOK_LABELS] = 1u << TARN__USE_LABEL};
  const bool step = what == LOOK_BEST_WORDS || what == LOOK_ALL_WORDS;
  if (step && tarn__config_check_decoding(model->config) != TARN_STATUS_OK) return false;
  return (tarn__config_task(model->config)->uses & uses[what]) != 0;
}

static void look_at_step(const tarn__model *model, tarn__graph *graph, void *const *caches, bool best) {
  const tarn__model_step step = {.rows = 1,
                                 .self_cache = caches,
                                 .histories = {{.count = 1, .cache_rows = 1}, {.count = 1, .cache_rows = 1}},
                                 .longest = 1,
                                 .positions_end = 1,
                                 .cross_cache = caches,
                                 .source_rows = 1,
                                 .best = best};
  tarn__model_build_step(model, graph, &step);
}

static void look_at_labels(const tarn__model *model, tarn__graph *graph, const tarn__packed *text) {
  tarn__tensor *answers;
  tarn__batch batch = {.source = *text, .target = *text};
  tarn__task_largest(&batch, model->config);
  tarn__model_build_loss(model, graph, &batch, NULL, 0.0, 1.0, &answers);
}

// Of one sentence of one token.
static tarn_status look_at_all(const tarn__model *model, tarn__graph *graph, tarn__tensor **cross,
                               void *const *caches) {
  const int32_t offsets[] = {0, 1};
  const tarn__packed text = {.sentences = 1, .rows = 1, .longest = 1, .offsets = offsets};
  const tarn__packed *const sides[TARN__SIDES] = {&text, &text};
  const tarn__task *task = tarn__config_task(model->config);
  const bool whole = tarn__task_reads_whole(task);
  tarn__top best;
  for (look what = 0; what < LOOKS; what++) {
    if (!is_run(model, what)) continue;
    tarn__model_begin(model, graph, false, 1);
    if (what == LOOK_STACKS) tarn__model_build_stacks(model, graph, task->stack_count, sides, &WHOLE, NULL);
    if (what == LOOK_ENCODE) tarn__model_build_encode(model, graph, &text, cross);
    if ((what == LOOK_BEST_WORDS || what == LOOK_ALL_WORDS) && whole) look_at_whole(model, graph, &text);
    if ((what == LOOK_BEST_WORDS || what == LOOK_ALL_WORDS) && !whole)
      look_at_step(model, graph, caches, what == LOOK_BEST_WORDS);
    if (what == LOOK_SCORES) tarn__model_build_scores(model, graph, &text, NULL, NULL, 1, &best);
    if (what == LOOK_LABELS) look_at_labels(model, graph, &text);
    TARN_TRY(graph->status);
    look_at(model, graph);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__model_find_rounded(tarn__model *model) {
  const bool translates = tarn__config_task(model->config)->uses >> TARN__USE_TRANSLATE & 1u;
  // Decoding itself rejects models that cannot be decoded.
  if (model->training || (translates && tarn__config_check_decoding(model->config) != TARN_STATUS_OK))
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

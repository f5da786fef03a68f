#include "model/first_rows.h"

#include "model/integers.h"
#include "model/stacks.h"

// Whether a layer's output for some rows follows from its keys and values of all rows and the rest of those rows.
static bool computes_rows(const tarn__layer_weights *weights, const tarn__position_entry *position) {
  const tarn__mixer_entry *mixer = tarn__mixer_of(weights->kind);
  const tarn__channel_entry *channel = tarn__channel_of(weights->kind);
  const bool by_distance = position->bias || position->biases || position->relative;
  return mixer->reads_rows && !by_distance && weights->cross.heads == 0 && !weights->backskip &&
         !(channel && channel->together);
}

// Whether all rows of the last layer are wanted for something else.
static bool reads_all(const tarn__model *model, const tarn__task_stack *what, const tarn__model_shortcuts *cuts) {
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  return cuts->stacks || cuts->outputs || cuts->shows[what->id] || stack->halting.weight ||
         stack->steps->pool_count > 0 || (what->bottom && tarn__model_bottom(model) == stack->count);
}

void tarn__first_rows_read(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch,
                           tarn__model_shortcuts *cuts) {
  const tarn__task *task = tarn__config_task(model->config);
  const tarn__task_stack *what = &task->stacks[0];
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  if (task->stack_count != 1 || task->labelled != TARN__LABELLED_SENTENCES || stack->count == 0) return;
  if (model->weights.pool != TARN_POOL_CLS || what->causal || reads_all(model, what, cuts)) return;
  const int last = stack->count - 1;
  const bool skipped = cuts->skip[what->id] && cuts->skip[what->id][last];
  if (skipped || !computes_rows(stack->layers[last].weights, tarn__position_of(&model->config->model.positions)))
    return;
  const int64_t sentences = batch->target.sentences;
  int32_t *offsets = tarn__integers(graph, sentences);
  for (int64_t s = 0; offsets && s <= sentences; s++) offsets[s] = (int32_t)s;
  cuts->read_rows = tarn__graph_input(graph, sentences, batch->selected, "rows that are read");
  cuts->read_offsets = tarn__graph_input(graph, sentences + 1, offsets, "offsets of rows that are read");
}

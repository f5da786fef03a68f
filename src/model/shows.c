#include "model/shows.h"

#include "model/stacks.h"
#include "task/head.h"

static bool wants(const tarn__model_shows *shows, tarn__answer answer) { return shows->answers >> answer & 1u; }

static tarn__tensor *numbers_of(const tarn__model *model, tarn__graph *graph, tarn__tensor *x) {
  const tarn__task_weights *weights = &model->weights;
  tarn__tensor *numbers;
  tarn__squared_error(graph, x, weights->output_table, weights->output_bias, NULL, 1.0, &numbers);
  return numbers;
}

// A mixture has no logits, nor have bands; the logarithms of their probabilities serve as logits, since their softmax
// gives the probabilities.
static tarn__tensor *logits_of(tarn__graph *graph, const tarn__head *head) {
  const tarn__task_weights *weights = head->weights;
  if (head->prior || weights->output_bands.count > 0) return tarn__head_log_probabilities(graph, head);
  return tarn__linear(graph, head->x, weights->output_table, weights->output_bias, TARN__IDENTITY);
}

static void build_answers(const tarn__model *model, tarn__graph *graph, const tarn__head *head,
                          tarn__model_shows *shows) {
  const bool words = !(tarn__config_task(model->config)->keeps >> TARN__KEPT_NUMBERS & 1u);
  tarn__tensor **answer = shows->answer;
  graph->label = "output";
  if (wants(shows, TARN__ANSWER_INPUT)) answer[TARN__ANSWER_INPUT] = head->x;
  if (wants(shows, TARN__ANSWER_LOGITS))
    answer[TARN__ANSWER_LOGITS] = words ? logits_of(graph, head) : numbers_of(model, graph, head->x);
  if (words && wants(shows, TARN__ANSWER_LOG_PROBABILITIES))
    answer[TARN__ANSWER_LOG_PROBABILITIES] = tarn__head_log_probabilities(graph, head);
  if (words && (wants(shows, TARN__ANSWER_TOP) || wants(shows, TARN__ANSWER_TOP_IDS))) {
    const tarn__top top = tarn__head_top(graph, head, shows->best, 0);
    answer[TARN__ANSWER_TOP] = top.values;
    answer[TARN__ANSWER_TOP_IDS] = top.ids;
  }
  for (int i = 0; i < TARN__ANSWERS; i++)
    if (answer[i]) answer[i]->keep = true;
}

void tarn__model_build_shows(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch, int stacks,
                             tarn__model_shows *shows) {
  const tarn__task *task = tarn__config_task(model->config);
  const tarn__packed *const sides[TARN__SIDES] = {&batch->source, &batch->target};
  tarn__model_shortcuts cuts = {0};
  tarn__block_run top;
  for (int i = 0; i < TARN__STACKS; i++) {
    cuts.shows[i] = shows->layers[i];
    shows->stack[i] = NULL;
  }
  for (int i = 0; i < TARN__ANSWERS; i++) shows->answer[i] = NULL;
  tarn__task_loss from = {.batch = batch, .weights = &model->weights};
  cuts.stacks = shows->stack;
  from.states = tarn__model_build_stacks(model, graph, stacks, sides, &cuts, &top);
  from.offsets = top.memory_offsets;
  for (int i = 0; i < TARN__STACKS; i++) {
    if (!shows->whole[i]) shows->stack[i] = NULL;
    if (shows->stack[i]) shows->stack[i]->keep = true;
  }
  if (!shows->answers || stacks < task->stack_count) return;
  tarn__tensor *x = task->labelled == TARN__LABELLED_SENTENCES ? task->pooled_input(graph, &from)
                                                               : task->output_input(graph, from.states, from.weights);
  const tarn__head head = tarn__head_of(graph, from.states, x, &model->weights);
  build_answers(model, graph, &head, shows);
}

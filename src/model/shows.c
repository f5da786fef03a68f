#include "model/shows.h"

#include "model/stacks.h"

static bool wants(const tarn__model_shows *shows, tarn__answer answer) { return shows->answers >> answer & 1u; }

static tarn__tensor *numbers_of(const tarn__model *model, tarn__graph *graph, tarn__tensor *x) {
  const tarn__task_weights *weights = &model->weights;
  tarn__tensor *numbers;
  tarn__squared_error(graph, x, weights->output_table, weights->output_bias, NULL, 1.0, &numbers);
  return numbers;
}

static void build_answers(const tarn__model *model, tarn__graph *graph, tarn__tensor *x, tarn__model_shows *shows) {
  tarn__param *table = model->weights.output_table, *bias = model->weights.output_bias;
  const bool words = model->config->model.task != TARN_TASK_REGRESSION;
  tarn__tensor **answer = shows->answer;
  graph->label = "output";
  if (wants(shows, TARN__ANSWER_INPUT)) answer[TARN__ANSWER_INPUT] = x;
  if (wants(shows, TARN__ANSWER_LOGITS))
    answer[TARN__ANSWER_LOGITS] =
        words ? tarn__linear(graph, x, table, bias, TARN__IDENTITY) : numbers_of(model, graph, x);
  if (words && wants(shows, TARN__ANSWER_LOG_PROBABILITIES))
    answer[TARN__ANSWER_LOG_PROBABILITIES] = tarn__output_log_probabilities(graph, x, table, bias);
  if (words && (wants(shows, TARN__ANSWER_TOP) || wants(shows, TARN__ANSWER_TOP_IDS))) {
    const tarn__top top = tarn__output_top(graph, x, table, bias, shows->best, 0);
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
  tarn__tensor *x =
      task->labelled ? task->pooled_input(graph, &from) : task->output_input(graph, from.states, from.weights);
  build_answers(model, graph, x, shows);
}

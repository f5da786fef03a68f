#include "task/lengths.h"

#include <math.h>

tarn_status tarn__lengths_declare(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__declare *declare = site->declare;
  const tarn__init normal = {TARN__INIT_NORMAL, 1.0 / sqrt((double)declare->d_model), 1};
  weights->lengths =
      tarn__declare_param(declare, "length.weight", site->model->max_length, declare->d_model, true, normal);
  return declare->status;
}

// Numbers in the graph's memory; NULL after a failure.
static int32_t *numbers_of(tarn__graph *graph, int64_t count) {
  void *memory = NULL;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count, sizeof(int32_t));
  return memory;
}

// The outputs of the encoder at the ends of sentences [sentences, d_model].
static tarn__tensor *states_of(tarn__graph *graph, tarn__tensor *memory, const tarn__packed *source) {
  int32_t *rows = numbers_of(graph, source->sentences);
  for (int64_t s = 0; rows && s < source->sentences; s++) rows[s] = source->offsets[s + 1] - 1;
  graph->label = "output";
  return tarn__select_rows(graph, memory, tarn__graph_input(graph, source->sentences, rows, "ends of sentences"));
}

tarn__tensor *tarn__lengths_loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__packed *target = &from->batch->target;
  tarn__tensor *x = states_of(graph, from->memory, &from->batch->source);
  int32_t *lengths = numbers_of(graph, target->sentences);
  for (int64_t s = 0; lengths && s < target->sentences; s++)
    lengths[s] = target->offsets[s + 1] - target->offsets[s] - 1;
  tarn__tensor *ids = tarn__graph_input(graph, target->sentences, lengths, "lengths");
  return tarn__output_loss(graph, x, from->weights->lengths, NULL, ids, 0.0, from->grad_scale);
}

tarn__top tarn__lengths_top(tarn__graph *graph, tarn__tensor *memory, const tarn__packed *source,
                            const tarn__task_weights *weights, int64_t best) {
  const tarn__top top = tarn__output_top(graph, states_of(graph, memory, source), weights->lengths, NULL, best, 0);
  top.values->keep = top.values->result = true;
  top.ids->keep = top.ids->result = true;
  return top;
}

#include "model/universal.h"

#include "config/config_steps.h"
#include "model/integers.h"
#include "ops/weighted_rows.h"

bool tarn__universal_reads(const tarn_config *config) {
  return config->encoder.step_embeddings || config->decoder.step_embeddings;
}

void tarn__universal_declare(tarn__model_stack *stack, tarn__declare *declare, const tarn_stack *layers) {
  const tarn__init init = {TARN__INIT_XAVIER, 1.0, 1}, one = {TARN__INIT_ONE, 0.0, 1};
  stack->steps = layers;
  stack->step_layers = tarn__config_step_layers(layers);
  if (layers->act_threshold == 0) return;
  // As in tensor2tensor, rows begin by halting early.
  stack->halting.weight = tarn__declare_param(declare, "halting.weight", 1, declare->d_model, true, init);
  stack->halting.bias = tarn__declare_param(declare, "halting.bias", 1, 1, true, one);
}

tarn__universal tarn__universal_of(const tarn__model *model, const tarn__model_stack *stack, const tarn__block_run *run,
                                   double share) {
  return (tarn__universal){.model = model, .stack = stack, .run = run, .cost = stack->steps->act_loss_weight * share};
}

// Sinusoids of positions, or of a number that is the same for all rows. The table has no rows, so nothing is looked up.
static tarn__tensor *sinusoids(const tarn__universal *u, tarn__tensor *positions) {
  tarn__param *none = (tarn__param *)(uintptr_t)&u->model->no_table;  // is only read
  tarn__tensor *ids = tarn__graph_input(u->run->graph, positions->cols, positions->host, "no ids");
  return tarn__embedding(u->run->graph, ids, positions, none, NULL, 1.0, 0.0);
}

static tarn__tensor *step_vector(const tarn__universal *u, int64_t rows) {
  int32_t *numbers = tarn__integers(u->run->graph, rows);
  for (int64_t r = 0; numbers && r < rows; r++) numbers[r] = u->step;
  return sinusoids(u, tarn__graph_input(u->run->graph, rows, numbers, "step"));
}

// x [R, d], each row times its number.
static tarn__tensor *times(tarn__universal *u, tarn__tensor *x, tarn__tensor *numbers) {
  tarn__graph *graph = u->run->graph;
  if (!u->rows) {
    int32_t *rows = tarn__integers(graph, x->rows);
    for (int64_t r = 0; rows && r < x->rows; r++) rows[r] = (int32_t)r;
    u->rows = tarn__graph_input(graph, x->rows, rows, "rows");
    u->rows->rows = x->rows;  // the same numbers as a column
    u->rows->cols = 1;
  }
  return tarn__weighted_rows(graph, x, u->rows, numbers);
}

static void halt(tarn__universal *u, tarn__tensor *x, int layer) {
  const bool first = layer == 0, last = layer + u->stack->step_layers >= u->stack->count;
  const tarn__halting_spec spec = {.threshold = u->stack->steps->act_threshold,
                                   .cost = x->rows > 0 ? u->cost / (double)x->rows : 0.0,
                                   .last = last,
                                   .owner = u->stack == &u->model->encoder ? TARN__STACK_ENCODER : TARN__STACK_DECODER};
  tarn__tensor *z = tarn__project(u->run->graph, x, &u->stack->halting, TARN__IDENTITY);
  u->halted = tarn__halting(u->run->graph, z, first ? NULL : u->halted.sum, spec);
}

void tarn__universal_enter(tarn__universal *u, int layer, tarn__stream *stream) {
  const bool embeds = u->stack->steps->step_embeddings, halts = u->stack->halting.weight != NULL;
  tarn__graph *graph = u->run->graph;
  if (u->stack->step_layers == 0 || layer % u->stack->step_layers != 0 || (!embeds && !halts)) return;
  graph->label = u->stack->layers[layer].label;
  u->step = layer / u->stack->step_layers;
  tarn__tensor *x = tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
  if (halts && !u->state) u->state = x;
  if (embeds) {
    if (!u->positions) u->positions = sinusoids(u, u->run->positions);
    x = tarn__stream_sum(graph, tarn__stream_sum(graph, x, u->positions, 0.0), step_vector(u, x->rows), 0.0);
  }
  if (halts) halt(u, x, layer);
  stream->x = x;
}

void tarn__universal_leave(tarn__universal *u, int layer, tarn__stream *stream) {
  tarn__graph *graph = u->run->graph;
  if (!u->stack->halting.weight || (layer + 1) % u->stack->step_layers != 0) return;
  const bool first = !u->mean, last = layer + 1 == u->stack->count;
  tarn__tensor *made = tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
  tarn__tensor *part = times(u, made, u->halted.weight);
  u->mean = first ? part : tarn__stream_sum(graph, u->mean, part, 0.0);
  // In the first step every row runs.
  if (!first && !last)
    made = tarn__stream_sum(graph, times(u, made, u->halted.runs), times(u, u->state, u->halted.rests), 0.0);
  u->state = made;
  stream->x = last ? u->mean : made;
}

// The graphs of a model: the loss over whole sentences, and the two parts of decoding.
#include <math.h>

#include "graph/update.h"
#include "model/first_rows.h"
#include "model/funnel.h"
#include "model/joined.h"
#include "model/layers.h"
#include "model/model.h"
#include "model/stacks.h"
#include "model/transparent.h"
#include "model/universal.h"
#include "ops/pixels.h"
#include "task/bands.h"
#include "task/head.h"
#include "task/task.h"

// No shortcuts: everything is computed.
static const tarn__model_shortcuts WHOLE = {0};

// The input tokens of one side's embedding.
typedef struct token_rows {
  const int32_t *ids, *positions;
  int64_t rows, longest;    // longest: above every position
  const int32_t *segments;  // of models that have some
  const int32_t *pixels;    // of images
  tarn__tensor *computed;   // ids that a node computes; NULL: those above
} token_rows;

static tarn__param *table_of(const tarn__model *model, tarn__side side) {
  return side == TARN__SIDE_SOURCE ? model->weights.source_table : model->weights.target_table;
}

static token_rows tokens_of(const tarn__packed *packed) {
  return (token_rows){packed->ids,      packed->positions, packed->rows, packed->longest,
                      packed->segments, packed->pixels,    NULL};
}

// Positions of rows in their sentences, if the position scheme or a mixer needs them.
static tarn__tensor *positions_of(const tarn__model *model, tarn__graph *graph, const int32_t *positions,
                                  int64_t rows) {
  const bool read = tarn__position_of(&model->config->model.positions)->reads || tarn__model_by_position(model) ||
                    tarn__universal_reads(model->config);
  return read ? tarn__graph_input(graph, rows, positions, "positions") : NULL;
}

static tarn__tensor *embed_plain(const tarn__model *model, const tarn__block_run *run, tarn__param *table,
                                 tarn__param *learned, token_rows t, double dropout) {
  const tarn_config_model *config = &model->config->model;
  tarn__tensor *ids = t.computed ? t.computed : tarn__graph_input(run->graph, t.rows, t.ids, "ids");
  const tarn__embedded embedded = {.ids = ids,
                                   .positions = run->positions,
                                   .table = table,
                                   .position_table = learned,
                                   .scale = config->embedding_scale ? sqrt((double)table->cols) : 1.0,
                                   .dropout = dropout,
                                   .longest = t.positions ? t.longest : 0,
                                   .keys = run->position->keys};
  const tarn__position_entry *position = tarn__position_of(run->position);
  if (position->embed) return position->embed(run->graph, &embedded);
  return tarn__embedding(run->graph, embedded.ids, NULL, table, NULL, embedded.scale, embedded.dropout);
}

// Embeds words in bands and adds the vectors of the position scheme, which look nothing up.
static tarn__tensor *embed_bands(const tarn__model *model, const tarn__block_run *run, const tarn__bands *bands,
                                 tarn__param *learned, token_rows t) {
  const double scale = model->config->model.embedding_scale ? sqrt((double)run->d_model) : 1.0;
  tarn__tensor *x = tarn__bands_embed(run->graph, bands, t.ids, t.rows, scale);
  if (!tarn__position_of(run->position)->embed) return x;
  tarn__param *none = (tarn__param *)(uintptr_t)&model->no_table;  // is only read
  tarn__stream sum = {.x = x, .branch = embed_plain(model, run, none, learned, t, 0.0)};
  return tarn__stream_finish(run->graph, &sum, &(tarn__norm_weights){0});
}

// The second term of the embeddings of a text or of an image: segments, or the products of patches, whose bias is the
// vector that all patches have in the table.
static tarn__tensor *embed_second(const tarn__model *model, tarn__graph *graph, token_rows t) {
  tarn__param *patches = model->weights.patches;
  if (patches) {
    if (t.ids && !t.pixels)
      tarn__graph_fail(graph, TARN_STATUS_USAGE, "the model is one of images, which reads no text");
    tarn__tensor *ids = tarn__graph_input(graph, t.rows, t.ids, "kinds of rows");
    tarn__tensor *bytes = tarn__graph_input(graph, tarn__pixel_words(t.rows * patches->cols), t.pixels, "pixels");
    return tarn__linear(graph, tarn__pixels(graph, bytes, ids, patches->cols), patches, NULL, TARN__IDENTITY);
  }
  if (!model->segments) return NULL;
  return tarn__embedding(graph, tarn__graph_input(graph, t.rows, t.segments, "segments"), NULL, model->segments, NULL,
                         1.0, 0.0);
}

// Of the width of the table.
static tarn__tensor *embed_sum(const tarn__model *model, const tarn__block_run *run, tarn__side side, token_rows t) {
  const bool source = side == TARN__SIDE_SOURCE;
  const tarn__bands *bands = source ? &model->weights.source_bands : &model->weights.target_bands;
  tarn__param *table = table_of(model, side), *learned = source ? model->source_positions : model->target_positions;
  const double dropout = model->config->model.embedding_dropout;
  tarn__graph *graph = run->graph;
  const tarn__norm_weights *norm = &model->embedding_norms[side];
  if (!model->segments && !model->weights.patches && !norm->use.part && bands->count == 0)
    return embed_plain(model, run, table, learned, t, dropout);
  tarn__tensor *second = embed_second(model, graph, t);
  tarn__tensor *x =
      bands->count > 0 ? embed_bands(model, run, bands, learned, t) : embed_plain(model, run, table, learned, t, 0.0);
  tarn__stream sum = {.x = x, .branch = second};
  return tarn__dropout_apply(graph, tarn__stream_finish(graph, &sum, norm), dropout);
}

static tarn__tensor *embed(const tarn__model *model, const tarn__block_run *run, tarn__side side, token_rows t) {
  const tarn__task_weights *weights = &model->weights;
  const bool source = side == TARN__SIDE_SOURCE;
  const tarn__linear_weights *projection = source ? &weights->source_projection : &weights->target_projection;
  run->graph->label = "embeddings";
  tarn__graph_segment(run->graph);
  tarn__tensor *x = embed_sum(model, run, side, t);
  return projection->weight ? tarn__linear(run->graph, x, projection->weight, projection->bias, TARN__IDENTITY) : x;
}

// Starts a layer from its carried states.
static void carry(tarn__block_run *run, const tarn__model_stack *stack, int layer, const tarn__model_carried *carried) {
  const int64_t width = tarn__layer_state_width(stack->layers[layer].weights, run->d_model);
  const tarn__dtype dtype = tarn__recurrence_state_dtype(run->graph->dtype);
  if (width == 0) return;
  run->start = tarn__graph_external(run->graph, dtype, carried->rows, width,
                                    carried->start ? carried->start[layer] : NULL, "states before");
  run->end = tarn__graph_external(run->graph, dtype, carried->rows, width, carried->end ? carried->end[layer] : NULL,
                                  "states behind");
}

// The residual stream with every branch added.
static tarn__tensor *join(tarn__graph *graph, tarn__stream *stream) {
  return tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
}

static void run_layer(const tarn__model *model, tarn__stack_id id, int i, const tarn__model_shortcuts *cuts,
                      const tarn__block_run *run, tarn__stream *stream) {
  const tarn__model_stack *stack = tarn__model_stack_at(model, id);
  tarn__block_run own = *run;
  own.sums = stack->layers[i].sums;
  own.skip = stack->skip;
  own.share = cuts->share;
  if (cuts->carried && id == TARN__STACK_DECODER) carry(&own, stack, i, cuts->carried);
  run->graph->label = stack->layers[i].label;
  own.shows = cuts->shows[id] ? &cuts->shows[id][i + 1] : NULL;
  if (cuts->memories && id == TARN__STACK_DECODER) own.memory = cuts->memories[i];
  if (cuts->crosses && id == TARN__STACK_DECODER) own.cross_cache = cuts->crosses[i];
  if (i + 1 == stack->count) own.read_rows = cuts->read_rows, own.read_offsets = cuts->read_offsets;
  tarn__layer_build(&own, stack->layers[i].weights, stream);
  tarn__stream_show(run->graph, stream, own.shows);
}

// Runs the layers [first, last) of a stack except the skipped ones. Only decoders carry states.
static void run_layers(const tarn__model *model, tarn__stack_id id, int first, int last,
                       const tarn__model_shortcuts *cuts, tarn__block_run *run, tarn__stream *stream) {
  const tarn__model_stack *stack = tarn__model_stack_at(model, id);
  tarn__funnel funnel = tarn__funnel_of(stack->steps, run);
  tarn__universal universal = tarn__universal_of(model, stack, run, cuts->share);
  for (int i = first; i < last; i++) {
    tarn__universal_enter(&universal, i, stream);
    if (!cuts->skip[id] || !cuts->skip[id][i]) run_layer(model, id, i, cuts, run, stream);
    tarn__universal_leave(&universal, i, stream);
    tarn__funnel_leave(&funnel, i + 1, stream);
    if (cuts->outputs && id == TARN__STACK_ENCODER) cuts->outputs[i + 1] = join(run->graph, stream);
  }
}

// The biases that the position scheme adds to the scores of a stack, from a table that its layers share.
static tarn__tensor *biases_of(const tarn__model *model, tarn__graph *graph, tarn__stack_id id, bool causal) {
  const tarn_part_use *position = &model->config->model.positions;
  const tarn__model_stack *stack = tarn__model_stack_at(model, id);
  if (!stack->biases) return NULL;
  graph->label = tarn__stack_name(id);
  return tarn__position_of(position)->biases(graph, position->keys, stack->biases, causal);
}

static tarn__tensor *finish_stack(const tarn__model_stack *stack, const tarn__block_run *run, tarn__stream *stream) {
  return tarn__stream_finish(run->graph, stream, &stack->norm);
}

static tarn__tensor *embed_side(const tarn__model *model, const tarn__block_run *run, tarn__side side,
                                const tarn__packed *packed) {
  return embed(model, run, side, tokens_of(packed));
}

static tarn__tensor *offsets_of(tarn__graph *graph, tarn__side side, const tarn__packed *packed) {
  return tarn__graph_input(graph, packed->sentences + 1, packed->offsets,
                           side == TARN__SIDE_SOURCE ? "source offsets" : "target offsets");
}

int tarn__model_bottom(const tarn__model *model) {
  int layers = 0;
  const tarn__task_stack *what = tarn__task_bottom(tarn__config_task(model->config));
  if (!what || table_of(model, what->side)->trained || model->embedding_norms[what->side].gain) return 0;
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  if ((stack->biases && stack->biases->trained) || stack->halting.weight || stack->steps->pool_count > 0) return 0;
  while (layers < stack->count && stack->layers[layers].weights->kind->frozen == TARN_FROZEN_YES) layers++;
  return layers;
}

tarn__param tarn__model_bottom_table(const tarn__model *model, int64_t tokens) {
  return (tarn__param){.name = "outputs of the frozen bottom",
                       .rows = tokens,
                       .cols = model->config->model.d_model,
                       .uses = 1,
                       .dtype = model->dtype};
}

// The embeddings of both sides of a prefix language model in one sequence.
static tarn__tensor *embed_joined(const tarn__model *model, const tarn__block_run *run, const tarn__joined *joined,
                                  const tarn__packed *source, const tarn__packed *target) {
  tarn__block_run side = *run;
  token_rows tokens = tokens_of(target);
  side.positions = positions_of(model, run->graph, source->positions, source->rows);
  tarn__tensor *x = embed_side(model, &side, TARN__SIDE_SOURCE, source);
  side.positions = positions_of(model, run->graph, joined->target_positions, target->rows);
  tokens.positions = joined->target_positions;
  tokens.longest = joined->packed.longest;
  return tarn__prefix_join(run->graph, &joined->prefix, x, embed(model, &side, TARN__SIDE_TARGET, tokens));
}

static tarn__stream begin_stream(const tarn__model *model, const tarn__task_stack *what, const tarn__block_run *run,
                                 const tarn__packed *packed, const tarn__model_shortcuts *cuts) {
  tarn__stream stream = {.x = embed_side(model, run, what->side, packed)};
  if (cuts->shows[what->id]) tarn__stream_show(run->graph, &stream, cuts->shows[what->id]);
  if (cuts->outputs && what->id == TARN__STACK_ENCODER) cuts->outputs[0] = stream.x;
  return stream;
}

// The residual stream above the frozen bottom. Its pending branch is added there whether it is cached or not: a norm
// that adds the branch itself would read a sum that has not been rounded to the precision of the activations.
static tarn__tensor *build_bottom(const tarn__model *model, const tarn__task_stack *what, tarn__block_run *run,
                                  const tarn__packed *packed, const tarn__model_shortcuts *cuts) {
  tarn__stream stream = begin_stream(model, what, run, packed, cuts);
  run_layers(model, what->id, 0, tarn__model_bottom(model), cuts, run, &stream);
  return join(run->graph, &stream);
}

static tarn__tensor *read_bottom(tarn__graph *graph, int64_t rows, const tarn__model_shortcuts *cuts) {
  graph->label = "embeddings";
  return tarn__embedding(graph, tarn__graph_input(graph, rows, cuts->bottom_ids, "rows of the cache"), NULL,
                         cuts->bottom, NULL, 1.0, 0.0);
}

static tarn__block_run run_of(const tarn__model *model, tarn__graph *graph, const tarn__packed *packed,
                              tarn__tensor *offsets) {
  return (tarn__block_run){.graph = graph,
                           .d_model = model->config->model.d_model,
                           .offsets = offsets,
                           .positions = positions_of(model, graph, packed->positions, packed->rows),
                           .position = &model->config->model.positions,
                           .longest = packed->longest};
}

// The output of a stack. `run` holds the memory it attends to, and then the offsets of the output's rows. embedded: its
// input, NULL: that of its side.
static tarn__tensor *build_stack(const tarn__model *model, const tarn__task_stack *what, tarn__block_run *run,
                                 const tarn__packed *packed, const tarn__model_shortcuts *cuts,
                                 tarn__tensor *embedded) {
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  const int bottom = what->bottom ? tarn__model_bottom(model) : 0;
  tarn__stream stream;
  if (embedded)
    stream = (tarn__stream){.x = embedded};
  else if (!what->bottom)
    stream = begin_stream(model, what, run, packed, cuts);
  else if (cuts->bottom)
    stream = (tarn__stream){.x = read_bottom(run->graph, packed->rows, cuts)};
  else
    stream = (tarn__stream){.x = build_bottom(model, what, run, packed, cuts)};
  run_layers(model, what->id, bottom, stack->count, cuts, run, &stream);
  if (cuts->read_rows) run->offsets = cuts->read_offsets, run->longest = 1;
  return finish_stack(stack, run, &stream);
}

tarn__tensor *tarn__model_build_bottom(const tarn__model *model, tarn__graph *graph, const tarn__packed *source) {
  const tarn__task_stack *what = tarn__task_bottom(tarn__config_task(model->config));
  tarn__block_run run = run_of(model, graph, source, offsets_of(graph, what->side, source));
  run.biases = biases_of(model, graph, what->id, what->causal);
  tarn__tensor *x = build_bottom(model, what, &run, source, &WHOLE);
  x->keep = true;
  return x;
}

// With Transparent attention: the memory of each layer of the decoder that attends.
static tarn__tensor **memories_of(const tarn__model *model, tarn__graph *graph, tarn__tensor *const *outputs) {
  void *memory = NULL;
  if (!outputs || graph->status != TARN_STATUS_OK) return NULL;
  graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)model->decoder.count, sizeof(tarn__tensor *));
  tarn__tensor **memories = graph->status == TARN_STATUS_OK ? memory : NULL;
  for (int i = 0; memories && i < model->decoder.count; i++)
    if (model->decoder.layers[i].weights->cross.heads > 0)
      memories[i] = tarn__transparent_memory(model, graph, outputs, i);
  return memories;
}

// The one stack of a prefix language model: its output for the rows of the target.
static tarn__tensor *build_joined(const tarn__model *model, tarn__graph *graph, const tarn__task_stack *what,
                                  const tarn__packed *const sides[TARN__SIDES], const tarn__model_shortcuts *cuts,
                                  tarn__block_run *above) {
  const tarn__packed *source = sides[TARN__SIDE_SOURCE], *target = sides[TARN__SIDE_TARGET];
  const tarn__joined joined = tarn__joined_of(graph, source, target);
  tarn__block_run run = run_of(model, graph, &joined.packed, offsets_of(graph, what->side, &joined.packed));
  run.causal = what->causal;
  run.prefix = &joined.prefix;
  tarn__tensor *x = embed_joined(model, &run, &joined, source, target);
  x = build_stack(model, what, &run, &joined.packed, cuts, x);
  x = tarn__select_rows(graph, x, joined.prefix.target_rows);
  if (cuts->stacks) cuts->stacks[what->id] = x;
  if (above) *above = (tarn__block_run){.memory = x, .memory_offsets = offsets_of(graph, what->side, target)};
  return x;
}

// What a stack reads, above `below`, the output of the stack before it.
static tarn__block_run run_above(const tarn__model *model, tarn__graph *graph, const tarn__task_stack *what,
                                 const tarn__packed *packed, const tarn__block_run *below,
                                 tarn__model_shortcuts *cuts) {
  tarn__block_run run = run_of(model, graph, packed, offsets_of(graph, what->side, packed));
  run.causal = what->causal;
  run.biases = biases_of(model, graph, what->id, what->causal);
  if (!what->attends) return run;
  cuts->memories = memories_of(model, graph, cuts->outputs);
  run.memory = below->memory;
  run.memory_offsets = below->memory_offsets;
  run.memory_longest = below->memory_longest;
  return run;
}

tarn__tensor *tarn__model_build_stacks(const tarn__model *model, tarn__graph *graph, int count,
                                       const tarn__packed *const sides[TARN__SIDES], const tarn__model_shortcuts *cuts,
                                       tarn__block_run *above) {
  const tarn__task *task = tarn__config_task(model->config);
  if (task->stacks[0].prefix) return build_joined(model, graph, &task->stacks[0], sides, cuts, above);
  tarn__block_run below = {0};
  tarn__tensor *x = NULL;
  tarn__model_shortcuts own = *cuts;
  if (!own.outputs) own.outputs = tarn__transparent_outputs(model, graph);
  for (int s = 0; s < count; s++) {
    const tarn__task_stack *what = &task->stacks[s];
    const tarn__packed *packed = sides[what->side];
    tarn__block_run run = run_above(model, graph, what, packed, &below, &own);
    if (cuts->below) *cuts->below = below;
    x = build_stack(model, what, &run, packed, &own, NULL);
    if (cuts->stacks) cuts->stacks[what->id] = x;
    below = (tarn__block_run){.memory = x, .memory_offsets = run.offsets, .memory_longest = run.longest};
  }
  if (above) *above = below;
  return x;
}

// What a loss takes to run the last stack again: the shortcuts of its first run, and what it read then.
typedef struct reader {
  const tarn__model *model;
  tarn__model_shortcuts cuts;
  tarn__block_run below;
} reader;

static tarn__tensor *read_again(tarn__graph *graph, const tarn__task_loss *from, const tarn__packed *rows,
                                tarn__tensor *ids) {
  const reader *r = from->reader;
  const tarn__task *task = tarn__config_task(r->model->config);
  const tarn__task_stack *what = &task->stacks[task->stack_count - 1];
  tarn__model_shortcuts cuts = r->cuts;
  cuts.shows[what->id] = NULL;  // of the first run
  tarn__block_run run = run_above(r->model, graph, what, rows, &r->below, &cuts);
  token_rows tokens = tokens_of(rows);
  tokens.computed = ids;
  return build_stack(r->model, what, &run, rows, &cuts, embed(r->model, &run, what->side, tokens));
}

// The output of the last stack for a text.
static tarn__tensor *build_states(const tarn__model *model, tarn__graph *graph, const tarn__packed *target,
                                  const tarn__model_shortcuts *cuts) {
  const tarn__packed *const sides[TARN__SIDES] = {[TARN__SIDE_TARGET] = target};
  return tarn__model_build_stacks(model, graph, tarn__config_task(model->config)->stack_count, sides, cuts, NULL);
}

tarn__tensor *tarn__model_build_loss(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch,
                                     const tarn__model_shortcuts *shortcuts, double label_smoothing, double grad_scale,
                                     tarn__tensor **answers) {
  const tarn__packed *const sides[TARN__SIDES] = {&batch->source, &batch->target};
  const tarn__task *task = tarn__config_task(model->config);
  tarn__block_run top;
  reader again = {.model = model};
  tarn__model_shortcuts cuts = shortcuts ? *shortcuts : WHOLE;
  cuts.share = grad_scale * (double)batch->predictions;
  tarn__task_loss from = {
      .batch = batch, .weights = &model->weights, .smoothing = label_smoothing, .grad_scale = grad_scale};
  if (answers) *answers = NULL;
  from.answers = answers;
  tarn__tensor *own[TARN__STACKS] = {NULL};
  if (!cuts.outputs) cuts.outputs = tarn__transparent_outputs(model, graph);
  tarn__first_rows_read(model, graph, batch, &cuts);
  if (!cuts.stacks) cuts.stacks = own;
  again.cuts = cuts;
  cuts.below = &again.below;
  from.states = tarn__model_build_stacks(model, graph, task->stack_count, sides, &cuts, &top);
  from.offsets = top.memory_offsets;
  from.memory = task->stack_count > 1 ? cuts.stacks[task->stacks[task->stack_count - 2].id] : NULL;
  from.read = read_again;
  from.reader = &again;
  tarn__tensor *loss = task->loss(graph, &from);
  loss->keep = loss->result = true;
  if (answers && *answers) (*answers)->keep = (*answers)->result = true;
  return loss;
}

tarn__tensor *tarn__model_build_states(const tarn__model *model, tarn__graph *graph, const tarn__packed *target,
                                       const tarn__model_shortcuts *shortcuts) {
  tarn__tensor *x = build_states(model, graph, target, shortcuts ? shortcuts : &WHOLE);
  x->keep = true;
  return x;
}

const tarn__task_stack *tarn__model_first_stack(const tarn__model *model) {
  return &tarn__config_task(model->config)->stacks[0];
}

tarn__tensor *tarn__model_build_layers(const tarn__model *model, tarn__graph *graph, const tarn__packed *packed,
                                       tarn__tensor *x, int first, int last) {
  const tarn__task_stack *what = tarn__model_first_stack(model);
  tarn__block_run run = run_of(model, graph, packed, offsets_of(graph, what->side, packed));
  run.causal = what->causal;
  run.biases = biases_of(model, graph, what->id, what->causal);
  tarn__stream stream = {.x = x};
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  if (stack->halting.weight && (first > 0 || last < stack->count))
    tarn__graph_fail(
        graph, TARN_STATUS_UNSUPPORTED,
        "%s.act_threshold: the output is a mean over all steps of the stack, so layers %d to %d are no map "
        "by themselves; take all %d",
        tarn__stack_name(what->id), first + 1, last, stack->count);
  if (stack->steps->pool_count > 0)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED,
                     "%s.pool_after: layers behind a pooling have other rows, so the stack is no map of the residual "
                     "stream to itself",
                     tarn__stack_name(what->id));
  if (!x) stream = begin_stream(model, what, &run, packed, &WHOLE);
  run_layers(model, what->id, first, last, &WHOLE, &run, &stream);
  x = join(graph, &stream);
  x->keep = true;
  return x;
}

static tarn__head head_of(const tarn__model *model, tarn__graph *graph, tarn__tensor *states) {
  tarn__tensor *x = tarn__config_task(model->config)->output_input(graph, states, &model->weights);
  return tarn__head_of(graph, states, x, &model->weights);
}

static void show_top(tarn__top top) {
  top.values->keep = top.values->result = true;
  if (top.ids) top.ids->keep = top.ids->result = true;
}

tarn__tensor *tarn__model_build_scores(const tarn__model *model, tarn__graph *graph, const tarn__packed *target,
                                       const int32_t *rows, const int32_t *targets, int64_t count, tarn__top *best) {
  tarn__tensor *x = build_states(model, graph, target, &WHOLE);
  graph->label = "output";
  x = tarn__select_rows(graph, x, tarn__graph_input(graph, count, rows, "rows"));
  const tarn__head head = head_of(model, graph, x);
  tarn__tensor *losses = tarn__head_token_loss(graph, &head, tarn__graph_input(graph, count, targets, "targets"));
  losses->keep = losses->result = true;
  if (best) {
    *best = tarn__head_top(graph, &head, 1, 0);
    show_top(*best);
  }
  return losses;
}

void tarn__model_differentiate(const tarn__model *model, tarn__graph *graph, tarn__tensor *loss) {
  tarn__graph_differentiate(graph, loss);
  switch (model->config->train.recompute) {
    case TARN_RECOMPUTE_NONE:
    case TARN_RECOMPUTE_COUNT:
      tarn__graph_recompute(graph, TARN__RECOMPUTE_LEAN);
      break;
    case TARN_RECOMPUTE_CHEAP:
      tarn__graph_recompute(graph, TARN__RECOMPUTE_CHEAP);
      break;
    case TARN_RECOMPUTE_BLOCK:
      tarn__graph_recompute(graph, TARN__RECOMPUTE_SEGMENTS);
      break;
  }
  if (model->updates_at_once) tarn__graph_update(graph);
}

tarn__tensor *tarn__model_build_encode(const tarn__model *model, tarn__graph *graph, const tarn__packed *source,
                                       tarn__tensor **cross) {
  const tarn__packed *const sides[TARN__SIDES] = {[TARN__SIDE_SOURCE] = source};
  tarn__block_run run;
  if (model->encoder.count == 0) return NULL;  // the decoder reads the source itself
  tarn__model_shortcuts cuts = {.outputs = tarn__transparent_outputs(model, graph)};
  tarn__tensor *states = tarn__model_build_stacks(model, graph, 1, sides, &cuts, &run);
  run.graph = graph;
  run.d_model = model->config->model.d_model;
  for (int i = 0; i < model->decoder.count; i++) {
    const tarn__layer_weights *weights = model->decoder.layers[i].weights;
    cross[i] = NULL;
    graph->label = model->decoder.layers[i].label;
    if (weights->cross.heads == 0) continue;
    if (cuts.outputs) run.memory = tarn__transparent_memory(model, graph, cuts.outputs, i);
    cross[i] = tarn__cross_memory(&run, &weights->cross);
    cross[i]->keep = true;
  }
  return states;
}

// The output layer for some rows of states; rows NULL: for all.
static tarn__head head_of_rows(const tarn__model *model, tarn__graph *graph, tarn__tensor *x, const int32_t *rows,
                               int64_t count) {
  graph->label = "output";
  if (rows) x = tarn__select_rows(graph, x, tarn__graph_input(graph, count, rows, "predicted rows"));
  return head_of(model, graph, x);
}

static tarn__tensor *draws_of(tarn__graph *graph, const tarn__model_step *step) {
  return tarn__graph_input(graph, step->draw_count * TARN__DRAW_WORDS, step->draws, "draws");
}

// What is found or drawn after the processors of logits, or of wanted tokens, and what the model itself says of it.
static tarn__next predict_processed(tarn__graph *graph, const tarn__model_step *step, const tarn__head *head) {
  tarn__tensor *logits = tarn__head_logits(graph, head), *scores = logits;
  if (step->edits)
    scores = tarn__adjust_rows(graph, logits, tarn__graph_input(graph, step->edit_words, step->edits, "edits"));
  tarn__next next = {.top = {scores, NULL}};
  next.top = step->sampling ? tarn__sample_rows(graph, next.top, draws_of(graph, step), step->sampling)
                            : tarn__best_rows(graph, scores, step->best, step->eos);
  tarn__tensor *numbers = tarn__graph_input(graph, next.top.ids->rows, step->numbers, "rows");
  if (step->edits || step->sampling) next.own = tarn__pick_rows(graph, logits, next.top.ids, numbers, step->eos);
  if (step->tops > 0) next.tops = tarn__best_rows(graph, logits, step->tops, step->eos);
  if (step->wanted_count == 0) return next;
  tarn__tensor *wanted =
      tarn__graph_input_rows(graph, step->predicted_count, step->wanted_count, step->wanted, "wanted tokens");
  next.wanted = tarn__pick_rows(graph, scores, wanted, numbers, step->eos);
  if (step->edits) next.wanted_own = tarn__pick_rows(graph, logits, wanted, numbers, step->eos);
  return next;
}

static tarn__next predict_plain(tarn__graph *graph, const tarn__model_step *step, const tarn__head *head) {
  tarn__next next = {0};
  if (step->best > 0)
    next.top = tarn__head_top(graph, head, step->best, step->eos);
  else
    next.top.values = tarn__head_log_probabilities(graph, head);
  if (step->sampling) next.top = tarn__sample_rows(graph, next.top, draws_of(graph, step), step->sampling);
  return next;
}

// The output layer of a step.
static tarn__next predict(const tarn__model *model, tarn__graph *graph, const tarn__model_step *step, tarn__tensor *x) {
  if (step->predicted && step->predicted_count == 0) return (tarn__next){0};
  const tarn__head head = head_of_rows(model, graph, x, step->predicted, step->predicted_count);
  const bool processed = step->edits || step->wanted_count > 0 || step->tops > 0;
  const tarn__next next = processed ? predict_processed(graph, step, &head) : predict_plain(graph, step, &head);
  tarn__tensor *const more[] = {next.own, next.wanted, next.wanted_own};
  show_top(next.top);
  if (next.tops.values) show_top(next.tops);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    if (more[i]) more[i]->keep = more[i]->result = true;
  return next;
}

tarn__top tarn__model_build_top(const tarn__model *model, tarn__graph *graph, tarn__tensor *states, const int32_t *rows,
                                int64_t count, int64_t best, int32_t always) {
  const tarn__head head = head_of_rows(model, graph, states, rows, count);
  const tarn__top top = tarn__head_top(graph, &head, best, always);
  show_top(top);
  return top;
}

// The keys and values of the source that the first part has computed.
static tarn__tensor **crosses_of(const tarn__model *model, tarn__graph *graph, const tarn__model_whole *whole) {
  void *memory = NULL;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)model->decoder.count, sizeof(tarn__tensor *));
  tarn__tensor **crosses = memory;
  for (int i = 0; crosses && i < model->decoder.count; i++) {
    const int64_t width = tarn__layer_cross_width(model->decoder.layers[i].weights);
    crosses[i] = width > 0 ? tarn__graph_external(graph, graph->dtype, whole->source.rows, width,
                                                  whole->cross_cache ? whole->cross_cache[i] : NULL,
                                                  "keys and values of the source")
                           : NULL;
  }
  return crosses;
}

tarn__tensor *tarn__model_build_whole(const tarn__model *model, tarn__graph *graph, const tarn__model_whole *whole) {
  const tarn__task_stack *what = tarn__task_stack_of(tarn__config_task(model->config), TARN__STACK_DECODER);
  const tarn__model_shortcuts cuts = {.crosses = crosses_of(model, graph, whole)};
  tarn__block_run run = run_of(model, graph, &whole->target, offsets_of(graph, what->side, &whole->target));
  run.biases = biases_of(model, graph, what->id, what->causal);
  run.memory_offsets = offsets_of(graph, TARN__SIDE_SOURCE, &whole->source);
  run.memory_readers = tarn__graph_input(graph, whole->source.sentences + 1, whole->readers, "readers of the source");
  run.memory_longest = whole->source.longest;
  return build_stack(model, what, &run, &whole->target, &cuts, NULL);
}

tarn__next tarn__model_build_step(const tarn__model *model, tarn__graph *graph, const tarn__model_step *step) {
  int64_t d = model->config->model.d_model;
  tarn__block_run run = {
      .graph = graph,
      .d_model = d,
      .longest = step->longest,
      .skip = model->decoder.skip,
      .memory_longest = step->longest,
      .incremental = true,
      .positions = positions_of(model, graph, step->positions, step->rows),
      .position = &model->config->model.positions,
      .source_ranges = tarn__graph_input(graph, 2 * step->rows, step->source_ranges, "source ranges"),
      .biases = biases_of(model, graph, TARN__STACK_DECODER, true)};
  tarn__tensor *histories[TARN__SIGHTS] = {NULL}, *ranges[TARN__SIGHTS] = {NULL};
  for (int sight = 0; sight < TARN__SIGHTS; sight++) {
    const tarn__model_history *history = &step->histories[sight];
    if (sight != TARN__FAR && model->sights[sight] == 0) continue;
    histories[sight] = tarn__graph_input(graph, history->count, history->rows, "history");
    ranges[sight] = tarn__graph_input(graph, 2 * step->rows, history->ranges, "history ranges");
  }
  token_rows last = {
      .ids = step->ids, .positions = step->positions, .rows = step->rows, .longest = step->positions_end};
  tarn__stream stream = {.x = embed(model, &run, TARN__SIDE_TARGET, last)};
  tarn__universal universal = tarn__universal_of(model, &model->decoder, &run, 0.0);
  for (int i = 0; i < model->decoder.count; i++) {
    tarn__universal_enter(&universal, i, &stream);
    const tarn__layer_weights *weights = model->decoder.layers[i].weights;
    graph->label = model->decoder.layers[i].label;
    const int64_t width = tarn__layer_cache_width(weights, d), cross_width = tarn__layer_cross_width(weights);
    const int sight = model->decoder.layers[i].sight;
    run.history = histories[sight];
    run.history_ranges = ranges[sight];
    run.first_row = step->histories[sight].first_row;
    if (width > 0)
      run.self_cache = tarn__graph_external(graph, tarn__layer_cache_dtype(weights, graph->dtype),
                                            step->histories[sight].cache_rows, width, step->self_cache[i], "cache");
    if (cross_width > 0)
      run.cross_cache = tarn__graph_external(graph, graph->dtype, step->source_rows, cross_width, step->cross_cache[i],
                                             "keys and values of the source");
    tarn__layer_build(&run, weights, &stream);
    tarn__universal_leave(&universal, i, &stream);
  }
  return predict(model, graph, step, finish_stack(&model->decoder, &run, &stream));
}

#include "parts/backskip.h"

#include <math.h>
#include <stdio.h>

#include "ops/hadamard.h"

// Scale of the gradient's random image: about that of the gradients through the two branches of a reservoir.
static const double FEEDBACK_SCALE = 0.5;

// One use of a layer in a graph; in the graph's arena.
struct tarn__backskip {
  const tarn__backskip_weights *weights;
  tarn__stand_in_sums *sums;
  tarn__tensor *offsets;
  bool refresh;
  tarn__tensor *below;           // receives the gradient
  tarn__tensor *input, *output;  // x and z, detached
  tarn__tensor *features[2];     // of these two, for the predictor's gate
  tarn__tensor *dy;              // refresh: a copy, because the true backward pass overwrites it
  tarn__tensor *measured;        // refresh: the sums of the comparison
};

bool tarn__backskip_refreshes(const tarn_backskip *how, int64_t update) {
  return how->method != TARN_BACKSKIP_NONE && how->refresh > 0 && update > 0 && (update - 1) % how->refresh == 0;
}

static void declare_predictor(tarn__declare *declare, tarn__backskip_weights *weights) {
  const tarn__init xavier = {TARN__INIT_XAVIER, 1.0, 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  const tarn__init third = {TARN__INIT_UNIFORM, sqrt(1.0 / 3.0), 1};
  int64_t d = declare->d_model, width = tarn__backskip_width(d);
  weights->down = tarn__declare_param(declare, "down.weight", width, d, true, xavier);
  weights->input = tarn__declare_param(declare, "input.weight", width, d, true, xavier);
  weights->input_bias = tarn__declare_param(declare, "input.bias", 1, width, true, zero);
  weights->output = tarn__declare_param(declare, "output.weight", width, d, true, xavier);
  weights->kernel = tarn__declare_param(declare, "kernel", 1, 3 * width, true, third);
  weights->head = tarn__declare_param(declare, "head.weight", d, width, true, zero);
}

tarn__backskip_weights *tarn__backskip_declare(tarn__declare *declare) {
  const tarn_backskip *how = &declare->kind->backskip;
  void *memory;
  if (how->method == TARN_BACKSKIP_NONE || !declare->helpers.list || declare->status != TARN_STATUS_OK) return NULL;
  declare->status = tarn__arena_alloc(declare->arena, &memory, 1, sizeof(tarn__backskip_weights));
  if (declare->status != TARN_STATUS_OK) return NULL;
  tarn__backskip_weights *weights = memory;
  weights->how = *how;
  char prefix[160];
  snprintf(prefix, sizeof prefix, "backskip.%s", declare->prefix);
  tarn__declare own = *declare;
  own.prefix = prefix;
  own.role = TARN__ROLE_HELPER;
  own.params = own.helpers;
  if (how->method == TARN_BACKSKIP_FEEDBACK)
    weights->signs = tarn__declare_signs(&own, "feedback", own.d_model, own.d_model, 1);
  if (how->method == TARN_BACKSKIP_PREDICTOR) declare_predictor(&own, weights);
  declare->status = own.status;
  return weights;
}

static void build_features(tarn__graph *graph, tarn__backskip *skip) {
  const tarn__backskip_weights *w = skip->weights;
  skip->features[0] = tarn__linear(graph, skip->input, w->input, w->input_bias, TARN__IDENTITY);
  skip->features[1] = tarn__linear(graph, skip->output, w->output, NULL, TARN__IDENTITY);
}

// The term that the method adds to dy, or NULL.
static tarn__tensor *build_delta(tarn__graph *graph, const tarn__backskip *skip, tarn__tensor *dy) {
  const tarn__backskip_weights *w = skip->weights;
  switch (w->how.method) {
    case TARN_BACKSKIP_FEEDBACK:
      return tarn__hadamard(graph, dy, w->signs, NULL, TARN__IDENTITY);
    case TARN_BACKSKIP_PREDICTOR:
      dy = tarn__linear(graph, dy, w->down, NULL, TARN__IDENTITY);
      dy = tarn__gated_conv(graph, dy, skip->features[0], skip->features[1], skip->offsets, w->kernel);
      return tarn__linear(graph, dy, w->head, NULL, TARN__IDENTITY);
    case TARN_BACKSKIP_IDENTITY:
    case TARN_BACKSKIP_NONE:
    case TARN_BACKSKIP_COUNT:
      break;
  }
  return NULL;
}

static tarn__tensor *add_delta(tarn__graph *graph, const tarn__backskip *skip, tarn__tensor *dy, tarn__tensor *delta) {
  double scale = skip->weights->how.method == TARN_BACKSKIP_FEEDBACK ? FEEDBACK_SCALE : 1.0;
  return delta ? tarn__stand_in_add(graph, dy, delta, scale) : dy;
}

// Compares with the true gradient. A predictor's nodes are then differentiated by the rules of their ops, like those of
// a forward pass.
static void compare(tarn__graph *graph, tarn__backskip *skip, tarn__tensor *truth) {
  bool learns = skip->weights->how.method == TARN_BACKSKIP_PREDICTOR;
  size_t first = graph->node_count;
  if (learns) build_features(graph, skip);
  tarn__tensor *delta = build_delta(graph, skip, skip->dy);
  size_t end = graph->node_count;
  tarn__tensor *dx = add_delta(graph, skip, skip->dy, delta);
  tarn__tensor *error;
  skip->measured = tarn__stand_in_measure(graph, dx, truth, learns ? &error : NULL);
  if (!learns) return;
  delta->grad = error;
  for (size_t i = end; i-- > first && graph->status == TARN_STATUS_OK;)
    graph->nodes[i]->op->grad(graph, graph->nodes[i]);
}

// The layer's input in an update that refreshes: its gradient is the true one.
static void enter_grad(tarn__graph *graph, tarn__node *node) {
  tarn__backskip *skip = *(tarn__backskip **)node->attr;
  tarn__tensor *truth = node->out[0]->grad;
  if (skip->dy) compare(graph, skip, truth);
  if (skip->below->needs_grad) tarn__grad_add(graph, skip->below, truth);
}

static double no_bytes(const tarn__node *node) {
  (void)node;
  return 0.0;
}

static const tarn__op op_enter = {.id = TARN__OP_MARK, .name = "backskip_enter", .grad = enter_grad, .bytes = no_bytes};

// The layer's output: where its gradient is known.
static void leave_grad(tarn__graph *graph, tarn__node *node) {
  tarn__backskip *skip = *(tarn__backskip **)node->attr;
  tarn__tensor *dy = node->out[0]->grad;
  if (skip->refresh) {
    skip->dy = tarn__stand_in_copy(graph, dy);
    tarn__grad_add(graph, node->in[0], dy);
    return;
  }
  tarn__grad_add(graph, skip->below, add_delta(graph, skip, dy, build_delta(graph, skip, dy)));
}

static const tarn__op op_leave = {.id = TARN__OP_MARK, .name = "backskip_leave", .grad = leave_grad, .bytes = no_bytes};

// A node that computes nothing: the same values in the same memory, with a separate gradient rule.
static tarn__tensor *mark(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, tarn__backskip *skip) {
  tarn__node *node = tarn__graph_node(graph, op, sizeof skip);
  *(tarn__backskip **)node->attr = skip;
  node->in[0] = x;
  node->out[0] = tarn__graph_detached(graph, x);
  node->out[0]->needs_grad = true;
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__backskip *tarn__backskip_enter(const tarn__block_run *run, const tarn__backskip_weights *weights,
                                     tarn__stream *stream) {
  tarn__graph *graph = run->graph;
  bool trained_below = stream->x->needs_grad || (stream->branch && stream->branch->needs_grad);
  void *memory;
  if (!weights || !graph->training || !trained_below || graph->status != TARN_STATUS_OK) return NULL;
  graph->status = tarn__arena_alloc(&graph->arena, &memory, 1, sizeof(tarn__backskip));
  if (graph->status != TARN_STATUS_OK) return NULL;
  tarn__backskip *skip = memory;
  *skip = (tarn__backskip){.weights = weights,
                           .sums = run->sums,
                           .offsets = run->offsets,
                           .refresh = run->sums && tarn__backskip_refreshes(&weights->how, graph->update)};
  if (skip->refresh) {
    skip->below = stream->x;
    stream->x = mark(graph, &op_enter, stream->x, skip);
    graph->lean = weights->how.refresh > 1;
  } else {
    // The pending branch belongs to the layer below.
    const char *label = graph->label;
    if (stream->branch && stream->branch->source) graph->label = stream->branch->source->label;
    skip->below = tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
    graph->label = label;
    stream->x = tarn__graph_detached(graph, skip->below);
  }
  return skip;
}

void tarn__backskip_leave(const tarn__block_run *run, tarn__backskip *skip, tarn__stream *stream) {
  tarn__graph *graph = run->graph;
  if (!skip) return;
  graph->lean = false;
  skip->input = tarn__graph_detached(graph, stream->input);
  skip->output = tarn__graph_detached(graph, stream->branch ? stream->branch : stream->x);
  // Outside of the layer's segment, so that no backward pass recomputes the layer for them.
  int segment = graph->segment;
  tarn__graph_segment_end(graph);
  if (skip->weights->how.method == TARN_BACKSKIP_PREDICTOR && !skip->refresh) build_features(graph, skip);
  graph->segment = segment;
  stream->x = mark(graph, &op_leave, stream->x, skip);
}

tarn_status tarn__backskip_measured(const tarn__graph *graph) {
  for (size_t n = 0; n < graph->forward_count; n++) {
    if (graph->nodes[n]->op != &op_enter) continue;
    const tarn__backskip *skip = *(tarn__backskip **)graph->nodes[n]->attr;
    tarn__stand_in_sums own;
    if (!skip->measured) continue;
    TARN_TRY(tarn__graph_get(graph, &own, skip->measured));
    skip->sums->dot += own.dot;
    skip->sums->approximation += own.approximation;
    skip->sums->truth += own.truth;
  }
  return TARN_STATUS_OK;
}

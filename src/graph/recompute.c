// Recomputation: the backward pass recomputes the results it needs from a segment instead of keeping them.
//
//   before   f1 f2 f3 | f4 f5 f6 |                     b6 b5 b4   b3 b2 b1
//   after    f1 f2 f3 | f4 f5 f6 |   f4' f5'           b6 b5 b4   f1' f2'   b3 b2 b1
//                     ^          ^   f6' is omitted: nothing reads its result again
//                     tensors that cross a border are kept
//
// This applies to segments; cheap recomputation copies single nodes in the same way.
#include "graph/graph.h"

// Records the readers of each tensor. A result of the whole graph is kept like a tensor that crosses a border.
static void mark_readers(tarn__graph *graph) {
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i];
    tensor->border = tensor->keep;
    tensor->saved = false;
    tensor->again = NULL;
  }
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    for (int k = 0; k < TARN__MAX_INPUTS; k++) {
      tarn__tensor *in = node->in[k];
      if (!in || !in->source) continue;
      if (n >= graph->forward_count)
        in->saved = true;
      else if (in->source->segment != node->segment)
        in->border = true;
    }
  }
}

// Whether a node of a segment may run twice: it must neither modify memory that it does not own nor add to gradients.
static bool repeatable(const tarn__node *node) {
  bool pure = node->segment != 0;
  for (int k = 0; k < TARN__MAX_OUTPUTS; k++)
    if (node->out[k]) pure = pure && node->out[k]->place == TARN__WORKSPACE && !node->out[k]->shares;
  for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++) pure = pure && !node->dparam[k];
  return pure;
}

static bool at_border(const tarn__node *node) {
  bool border = false;
  for (int k = 0; k < TARN__MAX_OUTPUTS; k++) border |= node->out[k] && node->out[k]->border;
  return border;
}

// Renewing pays if the output that it starts from is kept anyway.
static bool renewable(const tarn__node *node, const tarn__tensor *out) {
  const tarn__op *op = node->op;
  if (!op->renew || node->out[op->renew_out] != out) return false;
  const tarn__tensor *from = node->out[op->renew_in];
  return from && (from->border || from->saved);
}

// The same for a cheap op: its inputs must be kept anyway.
static bool cheap(const tarn__node *node) {
  bool saved = node->op->cheap;
  for (int k = 0; k < TARN__MAX_INPUTS; k++)
    if (node->in[k] && node->in[k]->source) saved = saved && node->in[k]->saved;
  return saved;
}

static tarn__tensor *renew(tarn__graph *graph, const tarn__node *node) {
  graph->label = node->label;
  size_t first = graph->node_count;
  tarn__tensor *fresh = node->op->renew(graph, node);
  for (size_t n = first; n < graph->node_count; n++) graph->nodes[n]->again = true;
  return fresh;
}

// The tensor that a backward node reads in place of `tensor`, computed by new nodes if necessary. Recursion stays
// within one segment: results of other segments are kept, or renewed from kept results.
static tarn__tensor *again(tarn__graph *graph, tarn__tensor *tensor, tarn__recompute what) {
  const tarn__node *source = tensor->source;
  if (tensor->again) return tensor->again;
  if (!source || !repeatable(source) || (what == TARN__RECOMPUTE_LEAN && !source->lean)) return tensor;
  if ((what != TARN__RECOMPUTE_SEGMENTS && !source->lean) || at_border(source)) {
    if (renewable(source, tensor)) return tensor->again = renew(graph, source);
    if (!cheap(source)) return tensor;
  }
  tarn__tensor *in[TARN__MAX_INPUTS];
  for (int k = 0; k < TARN__MAX_INPUTS; k++) in[k] = source->in[k] ? again(graph, source->in[k], what) : NULL;
  graph->label = source->label;
  tarn__node *copy = tarn__graph_node(graph, source->op, 0);
  copy->attr = source->attr;
  copy->attr_bytes = source->attr_bytes;
  copy->again = true;
  for (int k = 0; k < TARN__MAX_INPUTS; k++) copy->in[k] = in[k];
  for (int k = 0; k < TARN__MAX_OUTPUTS; k++) {
    tarn__tensor *out = source->out[k];
    if (out) copy->out[k] = out->again = tarn__graph_tensor(graph, out->dtype, out->rows, out->cols, out->name);
  }
  tarn__graph_emit(graph, copy);
  return tensor->again;
}

static bool any_lean(const tarn__graph *graph) {
  bool lean = false;
  for (size_t n = 0; n < graph->forward_count && !lean; n++) lean = graph->nodes[n]->lean;
  return lean;
}

void tarn__graph_recompute(tarn__graph *graph, tarn__recompute what) {
  if (what == TARN__RECOMPUTE_LEAN && !any_lean(graph)) return;
  size_t forward = graph->forward_count;
  size_t backward = graph->node_count - forward;
  void *memory;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, backward + 1, sizeof(tarn__node *));
  if (graph->status != TARN_STATUS_OK) return;
  tarn__node **nodes = memory;
  for (size_t n = 0; n < backward; n++) nodes[n] = graph->nodes[forward + n];
  mark_readers(graph);
  graph->node_count = forward;
  for (size_t n = 0; n < backward && graph->status == TARN_STATUS_OK; n++) {
    for (int k = 0; k < TARN__MAX_INPUTS; k++)
      if (nodes[n]->in[k]) nodes[n]->in[k] = again(graph, nodes[n]->in[k], what);
    tarn__graph_emit(graph, nodes[n]);
  }
}

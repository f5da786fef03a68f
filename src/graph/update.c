#include "graph/update.h"

#include "base/memory.h"

static double bytes(const tarn__node *node) { return tarn__update_bytes(node->dparam[0]); }

const tarn__op tarn__op_update = {.id = TARN__OP_UPDATE, .name = "update", .bytes = bytes};

// Gives a node the workspace gradients that it adds to.
static void plan_gradients(tarn__graph *graph, tarn__node *node, size_t number) {
  for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++) {
    tarn__param *param = node->dparam[k];
    if (!param || !param->training.planned) continue;
    if (!param->training.gradient)
      param->training.gradient =
          tarn__graph_tensor(graph, TARN__F32, param->rows, param->cols, "gradient of a parameter");
    node->dparam_grad[k] = param->training.gradient;
    param->training.last = number;
  }
}

// Records the last read of a parameter whose gradient has begun; an earlier read is followed by a node that adds to it.
static void note_reads(const tarn__node *node, size_t number) {
  for (int k = 0; k < TARN__MAX_INPUTS; k++) {
    const tarn__tensor *in = node->in[k];
    if (in && in->place == TARN__PARAMETER && in->param->training.gradient) in->param->training.last = number;
  }
}

static void emit_update(tarn__graph *graph, tarn__param *param, size_t number, const tarn__node *after) {
  if (!param->training.gradient || param->training.last != number) return;
  graph->label = after->label;
  tarn__node *update = tarn__graph_node(graph, &tarn__op_update, 0);
  update->dparam[0] = param;
  update->dparam_grad[0] = param->training.gradient;
  param->training.gradient = NULL;
  tarn__graph_emit(graph, update);
}

// Emits the updates of all parameters for which this node is the last.
static void emit_updates(tarn__graph *graph, const tarn__node *node, size_t number) {
  for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++)
    if (node->dparam[k]) emit_update(graph, node->dparam[k], number, node);
  for (int k = 0; k < TARN__MAX_INPUTS; k++)
    if (node->in[k] && node->in[k]->place == TARN__PARAMETER) emit_update(graph, node->in[k]->param, number, node);
}

void tarn__graph_update(tarn__graph *graph) {
  const size_t forward = graph->forward_count, count = graph->node_count;
  void *memory;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, count + 1, sizeof(tarn__node *));
  if (graph->status != TARN_STATUS_OK) return;
  tarn__node **nodes = memory;
  for (size_t n = 0; n < count; n++) {
    nodes[n] = graph->nodes[n];
    plan_gradients(graph, nodes[n], n);
    note_reads(nodes[n], n);
  }
  // The loss node may compute gradients too. It is the last of the forward pass, so no update comes before it. This
  // also holds for gradients computed by the terms of a sum of losses, which precede it.
  graph->node_count = forward - 1;
  for (size_t n = forward - 1; n < count; n++) {
    tarn__graph_emit(graph, nodes[n]);
    for (size_t m = n == forward - 1 ? 0 : n; m <= n; m++) emit_updates(graph, nodes[m], m);
  }
}

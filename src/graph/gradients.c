#include "graph/add.h"

tarn__tensor *tarn__grad_into(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor **previous) {
  *previous = tensor->grad;
  tarn__tensor *grad = tarn__graph_tensor(graph, tensor->dtype, tensor->rows, tensor->cols, "gradient");
  if (*previous) grad->shares = tarn__tensor_owner(*previous);
  tensor->grad = grad;
  return grad;
}

void tarn__grad_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution) {
  if (!tensor->grad) {
    tensor->grad = contribution;
    return;
  }
  tarn__node *node = tarn__graph_node(graph, &tarn__op_add, 0);
  node->in[0] = tensor->grad;
  node->in[1] = contribution;
  node->out[0] = tarn__graph_tensor(graph, tensor->dtype, tensor->rows, tensor->cols, "gradient");
  node->out[0]->shares = tarn__tensor_owner(tensor->grad);
  tensor->grad = node->out[0];
  tarn__graph_emit(graph, node);
}

void tarn__graph_differentiate(tarn__graph *graph, tarn__tensor *loss) {
  size_t forward = graph->node_count;
  if (graph->directions != 0)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "a graph that was pushed forward is not differentiated");
  graph->forward_count = forward;
  graph->backward = true;
  tarn__graph_segment_end(graph);
  for (size_t i = forward; i-- > 0 && graph->status == TARN_STATUS_OK;) {
    tarn__node *node = graph->nodes[i];
    bool reached = false;
    for (int k = 0; k < TARN__MAX_OUTPUTS; k++)
      reached |= node->out[k] && node->out[k]->needs_grad && (node->out[k]->grad || node->out[k] == loss);
    graph->label = node->label;
    if (reached) node->op->grad(graph, node);
  }
}

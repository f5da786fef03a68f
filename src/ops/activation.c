#include "ops/activation.h"

#include "ops/linear.h"

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *dy = node->out[0]->grad;
  if (!x->needs_grad) return;
  tarn__grad_add(graph, x, tarn__linear_dz(graph, dy, x, NULL, *(const tarn__activation *)node->attr));
}

static const tarn__op activation_op = {
    .id = TARN__OP_ACTIVATION, .name = "activation", .grad = gradient, .in_place = true, .cheap = true};

tarn__tensor *tarn__activate(tarn__graph *graph, tarn__tensor *x, tarn__activation form) {
  if (!tarn__keeps_z(form))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "activation: identity and relu are no nodes of their own");
  tarn__node *node = tarn__graph_node(graph, &activation_op, sizeof form);
  *(tarn__activation *)node->attr = form;
  node->in[0] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "activation");
  tarn__graph_emit(graph, node);
  return y;
}

// The hyperbolic tangent, element by element.
#include "ops/tanh.h"

#include "graph/tangents.h"
#include "ops/ops.h"

static const tarn__op op_backward = {.id = TARN__OP_TANH_BACKWARD, .name = "tanh_backward"};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0];
  if (!x->needs_grad) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__TANH_Y] = node->out[0];
  back->in[TARN__TANH_DY] = node->out[0]->grad;
  back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__TANH_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static const tarn__op op_tangent = {
    .id = TARN__OP_TANH_TANGENT, .name = "tanh_tangent", .in_place = true, .inplace_in = TARN__TANH_DX};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, 0);
  push->in[TARN__TANH_Y] = y;
  push->in[TARN__TANH_DX] = node->in[0]->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of tanh");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_tanh = {
    .id = TARN__OP_TANH, .name = "tanh", .grad = grad, .tangent = tangent, .in_place = true};

tarn__tensor *tarn__tanh(tarn__graph *graph, tarn__tensor *x) {
  tarn__node *node = tarn__graph_node(graph, &op_tanh, 0);
  node->in[0] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "tanh");
  tarn__graph_emit(graph, node);
  return y;
}

// The hyperbolic tangent, element by element.
#include "ops/tanh.h"

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

static const tarn__op op_tanh = {.id = TARN__OP_TANH, .name = "tanh", .grad = grad, .in_place = true};

tarn__tensor *tarn__tanh(tarn__graph *graph, tarn__tensor *x) {
  tarn__node *node = tarn__graph_node(graph, &op_tanh, 0);
  node->in[0] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "tanh");
  tarn__graph_emit(graph, node);
  return y;
}

#include "ops/dropout.h"

#include "graph/tangents.h"
#include "ops/ops.h"

// Forward and backward nodes compute the same, y = mask * x / (1 - p); the attribute is a tarn__dropout. So do
// tangents, whose second input is a tensor of the forward pass, whose rows determine the masks.
static const tarn__op backward_op = {.id = TARN__OP_DROPOUT_BACKWARD, .name = "dropout_backward", .in_place = true};

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *y = node->out[0];
  if (!x->needs_grad) return;
  tarn__node *back = tarn__graph_node(graph, &backward_op, sizeof(tarn__dropout));
  *(tarn__dropout *)back->attr = *(const tarn__dropout *)node->attr;
  back->in[0] = y->grad;
  back->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "dropout_dx");
  tarn__graph_emit(graph, back);
  tarn__grad_add(graph, x, back->out[0]);
}

static const tarn__op tangent_op = {.id = TARN__OP_DROPOUT, .name = "dropout_tangent", .in_place = true};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &tangent_op, sizeof(tarn__dropout));
  *(tarn__dropout *)push->attr = *(const tarn__dropout *)node->attr;
  push->in[0] = node->in[0]->tangent;
  push->in[1] = y;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of dropout");
  tarn__graph_emit(graph, push);
}

static const tarn__op forward_op = {
    .id = TARN__OP_DROPOUT, .name = "dropout", .grad = gradient, .tangent = tangent, .in_place = true, .cheap = true};

tarn__tensor *tarn__dropout_apply(tarn__graph *graph, tarn__tensor *x, double p) {
  tarn__dropout dropout = tarn__dropout_make(graph, p);
  if (dropout.threshold == 0) return x;
  tarn__node *node = tarn__graph_node(graph, &forward_op, sizeof(tarn__dropout));
  *(tarn__dropout *)node->attr = dropout;
  node->in[0] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "dropped");
  tarn__graph_emit(graph, node);
  return y;
}

#include "ops/glu.h"

#include "graph/tangents.h"
#include "ops/ops.h"

// The gradient takes over the memory of x: both halves of an element are read before either is written.
static const tarn__op op_backward = {
    .id = TARN__OP_GLU_BACKWARD, .name = "glu_backward", .in_place = true, .inplace_out = 0, .inplace_in = TARN__GLU_X};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__activation));
  *(tarn__activation *)back->attr = *(const tarn__activation *)node->attr;
  back->in[TARN__GLU_X] = node->in[TARN__GLU_X];
  back->in[TARN__GLU_DY] = node->out[0]->grad;
  back->out[0] = tarn__grad_into(graph, node->in[TARN__GLU_X], &back->in[TARN__GLU_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static const tarn__op op_tangent = {.id = TARN__OP_GLU_TANGENT, .name = "glu_tangent"};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__GLU_X], *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__activation));
  *(tarn__activation *)push->attr = *(const tarn__activation *)node->attr;
  push->in[TARN__GLU_X] = x;
  push->in[TARN__GLU_DX] = x->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of glu");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_glu = {.id = TARN__OP_GLU, .name = "glu", .grad = grad, .tangent = tangent, .cheap = true};

tarn__tensor *tarn__glu(tarn__graph *graph, tarn__tensor *x, tarn__activation gate) {
  if (x->cols % 2 != 0) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "glu: its input has an odd number of columns");
  tarn__node *node = tarn__graph_node(graph, &op_glu, sizeof gate);
  *(tarn__activation *)node->attr = gate;
  node->in[TARN__GLU_X] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols / 2, "glu");
  tarn__graph_emit(graph, node);
  return y;
}

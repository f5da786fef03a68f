#include "ops/gated_conv.h"

#include "graph/tangents.h"
#include "ops/ops.h"

static const tarn__op op_backward = {.id = TARN__OP_GATED_CONV_BACKWARD, .name = "gated_conv_backward"};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__GC_DY] = node->out[0]->grad;
  for (int k = TARN__GC_X; k <= TARN__GC_KERNEL; k++) back->in[1 + k] = node->in[k];
  for (int k = TARN__GC_X; k <= TARN__GC_V; k++) {
    const tarn__tensor *in = node->in[k];
    if (in->needs_grad) back->out[k] = tarn__graph_tensor(graph, in->dtype, in->rows, in->cols, "gradient");
  }
  tarn__param *kernel = node->in[TARN__GC_KERNEL]->param;
  back->dparam[0] = kernel->trained ? kernel : NULL;
  tarn__graph_emit(graph, back);
  for (int k = TARN__GC_X; k <= TARN__GC_V; k++)
    if (back->out[k]) tarn__grad_add(graph, node->in[k], back->out[k]);
}

static const tarn__op op_tangent = {.id = TARN__OP_GATED_CONV_TANGENT, .name = "gated_conv_tangent"};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, 0);
  for (int k = TARN__GC_X; k <= TARN__GC_KERNEL; k++) push->in[k] = node->in[k];
  for (int k = TARN__GC_X; k <= TARN__GC_V; k++) push->in[TARN__GC_TANGENTS + k] = node->in[k]->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of gated convolution");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_forward = {.id = TARN__OP_GATED_CONV, .name = "gated_conv", .grad = grad, .tangent = tangent};

static bool same_shape(const tarn__tensor *a, const tarn__tensor *b) {
  return a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype;
}

tarn__tensor *tarn__gated_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *u, tarn__tensor *v,
                               tarn__tensor *offsets, tarn__param *kernel) {
  bool vector = kernel->dtype == (graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32);
  if (!same_shape(x, u) || !same_shape(x, v) || kernel->rows * kernel->cols != 3 * x->cols || !vector)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "gated_conv: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_forward, 0);
  node->in[TARN__GC_X] = x;
  node->in[TARN__GC_U] = u;
  node->in[TARN__GC_V] = v;
  node->in[TARN__GC_OFFSETS] = offsets;
  node->in[TARN__GC_KERNEL] = tarn__graph_param(graph, kernel);
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "gated convolution");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

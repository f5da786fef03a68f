#include "ops/activation.h"

#include "graph/tangents.h"
#include "ops/linear.h"

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *dy = node->out[0]->grad;
  if (!x->needs_grad) return;
  tarn__grad_add(graph, x, tarn__linear_dz(graph, dy, x, NULL, *(const tarn__activation *)node->attr));
}

static const tarn__op tangent_op = {.id = TARN__OP_ACTIVATION_TANGENT,
                                    .name = "activation_tangent",
                                    .in_place = true,
                                    .inplace_out = 0,
                                    .inplace_in = TARN__ACTIVATION_DX};

tarn__tensor *tarn__activation_tangent(tarn__graph *graph, tarn__tensor *dx, tarn__tensor *saved,
                                       tarn__activation form) {
  if (form == TARN__IDENTITY) return dx;
  tarn__node *node = tarn__graph_node(graph, &tangent_op, sizeof form);
  *(tarn__activation *)node->attr = form;
  node->in[TARN__ACTIVATION_DX] = dx;
  node->in[TARN__ACTIVATION_SAVED] = saved;
  node->out[0] = tarn__graph_tensor(graph, dx->dtype, dx->rows, dx->cols, "tangent of activation");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0];
  node->out[0]->tangent = tarn__activation_tangent(graph, x->tangent, x, *(const tarn__activation *)node->attr);
}

static const tarn__op activation_op = {.id = TARN__OP_ACTIVATION,
                                       .name = "activation",
                                       .grad = gradient,
                                       .tangent = tangent,
                                       .in_place = true,
                                       .cheap = true};

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

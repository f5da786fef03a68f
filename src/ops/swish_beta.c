#include "ops/swish_beta.h"

#include "graph/tangents.h"

// The gradient takes over the memory of x: an element is read before it is written.
static const tarn__op op_backward = {.id = TARN__OP_SWISH_BETA_BACKWARD,
                                     .name = "swish_beta_backward",
                                     .in_place = true,
                                     .inplace_out = 0,
                                     .inplace_in = TARN__SWISH_X};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SWISH_X], *beta = node->in[TARN__SWISH_BETA];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__swish_attr));
  *(tarn__swish_attr *)back->attr = *(const tarn__swish_attr *)node->attr;
  back->in[TARN__SWISH_X] = x;
  back->in[TARN__SWISH_BETA] = beta;
  back->in[TARN__SWISH_DY] = node->out[0]->grad;
  back->in[TARN__SWISH_OFFSETS] = node->in[TARN__SWISH_OFFSETS];
  if (x->needs_grad) back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__SWISH_PREVIOUS]);
  if (beta && tarn__param_learns(beta->param)) back->dparam[0] = beta->param;
  tarn__graph_emit(graph, back);
}

static const tarn__op op_tangent = {.id = TARN__OP_SWISH_BETA_BACKWARD, .name = "swish_beta_tangent"};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__swish_attr));
  *(tarn__swish_attr *)push->attr = *(const tarn__swish_attr *)node->attr;
  ((tarn__swish_attr *)push->attr)->forward = 1;
  push->in[TARN__SWISH_X] = node->in[TARN__SWISH_X];
  push->in[TARN__SWISH_BETA] = node->in[TARN__SWISH_BETA];
  push->in[TARN__SWISH_DY] = node->in[TARN__SWISH_X]->tangent;
  push->out[0] = node->out[0]->tangent = tarn__tangent_new(graph, node->out[0], "tangent of swish");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_swish = {
    .id = TARN__OP_SWISH_BETA, .name = "swish_beta", .grad = grad, .tangent = tangent, .cheap = true};

tarn__tensor *tarn__swish_beta(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, double beta,
                               tarn__param *learned, bool gated) {
  if ((gated && x->cols % 2 != 0) || (learned && (learned->rows != 1 || learned->cols != 1)))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "swish_beta: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_swish, sizeof(tarn__swish_attr));
  *(tarn__swish_attr *)node->attr = (tarn__swish_attr){.beta = beta, .gated = gated};
  node->in[TARN__SWISH_X] = x;
  node->in[TARN__SWISH_OFFSETS] = offsets;
  if (learned) node->in[TARN__SWISH_BETA] = tarn__graph_param(graph, learned);
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, gated ? x->cols / 2 : x->cols, "swish");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

#include "ops/linear.h"

#include "graph/tangents.h"
#include "ops/activation.h"
#include "ops/ops.h"

static double forward_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->out[0]->cols;
}

static double dx_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->out[0]->cols;
}

static double dweight_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->in[1]->cols;
}

static const tarn__op dz_op = {.id = TARN__OP_LINEAR_DZ, .name = "linear_dz"};

static const tarn__op dweight_op = {.id = TARN__OP_LINEAR_DWEIGHT, .name = "linear_dweight", .flops = dweight_flops};

static const tarn__op dx_op = {.id = TARN__OP_LINEAR_DX, .name = "linear_dx", .flops = dx_flops};

tarn__tensor *tarn__linear_dz(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *saved, tarn__param *bias,
                              tarn__activation activation) {
  if (activation == TARN__IDENTITY && bias == NULL) return dy;
  tarn__node *node = tarn__graph_node(graph, &dz_op, sizeof(tarn__linear_attr));
  ((tarn__linear_attr *)node->attr)->activation = activation;
  node->in[0] = dy;
  node->dparam[0] = bias;
  if (activation != TARN__IDENTITY) {
    node->in[1] = saved;
    node->out[0] = tarn__graph_tensor(graph, dy->dtype, dy->rows, dy->cols, "dz");
    node->out[0]->shares = dy;
  }
  tarn__graph_emit(graph, node);
  return activation != TARN__IDENTITY ? node->out[0] : dy;
}

// Makes the product that wrote dy also take it through the activation, so that dy need not be read and written again.
// What else contributes to dy is part of it by then. The product must be the newest node: behind an older one there may
// be nodes that read dy as it was, such as that of a shift whose op hands dy on as the gradient of its input.
bool tarn__linear_hand_slope(tarn__graph *graph, const tarn__op *op, int place, tarn__tensor *dy, tarn__tensor *saved,
                             tarn__activation activation) {
  tarn__node *product = dy->source;
  if (!product || product != graph->nodes[graph->node_count - 1] || product->op != op || product->out[0] != dy ||
      product->in[place])
    return false;
  ((tarn__linear_attr *)product->attr)->activation = activation;
  product->in[place] = saved;
  return true;
}

static void gradient(tarn__graph *graph, tarn__node *linear) {
  tarn__tensor *x = linear->in[0], *weight = linear->in[1];
  tarn__param *bias = linear->in[2] != NULL && linear->in[2]->needs_grad ? linear->in[2]->param : NULL;
  const tarn__activation activation = ((const tarn__linear_attr *)linear->attr)->activation;
  tarn__tensor *saved = linear->out[tarn__keeps_z(activation) ? TARN__LINEAR_Z : TARN__LINEAR_Y];
  tarn__tensor *dz = linear->out[TARN__LINEAR_Y]->grad;
  // The weight's gradient reads all of dz too. Without it, or if dz must be computed anyhow, one pass does both.
  const bool is_dz = activation == TARN__IDENTITY ||
                     tarn__linear_hand_slope(graph, &dx_op, TARN__LINEAR_DX_SAVED, dz, saved, activation);
  const bool with_weight = is_dz && weight->needs_grad;
  if (!with_weight) dz = tarn__linear_dz(graph, dz, saved, bias, is_dz ? TARN__IDENTITY : activation);
  // The weight's gradient first: x may die before the memory of dx is taken.
  if (weight->needs_grad) {
    tarn__node *node = tarn__graph_node(graph, &dweight_op, 0);
    node->in[0] = dz;
    node->in[1] = x;
    node->dparam[0] = weight->param;
    node->dparam[1] = with_weight ? bias : NULL;
    tarn__graph_emit(graph, node);
  }
  if (x->needs_grad) {
    tarn__node *node = tarn__graph_node(graph, &dx_op, sizeof(tarn__linear_attr));
    ((tarn__linear_attr *)node->attr)->activation = TARN__IDENTITY;
    node->in[0] = dz;
    node->in[1] = weight;
    node->out[0] = tarn__grad_into(graph, x, &node->in[TARN__LINEAR_DX_PREVIOUS]);
    tarn__graph_emit(graph, node);
  }
}

// The activation's result, recomputed from its input.
static tarn__tensor *renew(tarn__graph *graph, const tarn__node *linear) {
  return tarn__activate(graph, linear->out[TARN__LINEAR_Z], ((const tarn__linear_attr *)linear->attr)->activation);
}

// The product of all directions without the bias, then the slope of the activation.
static void tangent(tarn__graph *graph, tarn__node *linear) {
  const tarn__activation activation = ((const tarn__linear_attr *)linear->attr)->activation;
  tarn__tensor *y = linear->out[TARN__LINEAR_Y], *saved = y;
  if (tarn__keeps_z(activation))
    saved = tarn__tangent_keep(graph, linear, TARN__LINEAR_Z, y->dtype, y->rows, y->cols, "before activation");
  tarn__tensor *dz = tarn__linear(graph, linear->in[0]->tangent, linear->in[1]->param, NULL, TARN__IDENTITY);
  y->tangent = tarn__activation_tangent(graph, dz, saved, activation);
}

static const tarn__op linear_op = {.id = TARN__OP_LINEAR,
                                   .name = "linear",
                                   .grad = gradient,
                                   .tangent = tangent,
                                   .renew = renew,
                                   .renew_out = TARN__LINEAR_Y,
                                   .renew_in = TARN__LINEAR_Z,
                                   .flops = forward_flops};

tarn__tensor *tarn__linear(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *bias,
                           tarn__activation activation) {
  if (x->cols != weight->cols || x->dtype != weight->dtype || (bias != NULL && bias->cols != weight->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "linear: weight %s [%lld, %lld] does not fit its input or bias",
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  tarn__node *node = tarn__graph_node(graph, &linear_op, sizeof(tarn__linear_attr));
  ((tarn__linear_attr *)node->attr)->activation = activation;
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, weight);
  node->in[2] = bias != NULL ? tarn__graph_param(graph, bias) : NULL;
  tarn__tensor *y = node->out[TARN__LINEAR_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->rows, "linear");
  bool backward = x->needs_grad || node->in[1]->needs_grad || (bias != NULL && node->in[2]->needs_grad);
  if (tarn__keeps_z(activation) && graph->training && backward)
    node->out[TARN__LINEAR_Z] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->rows, "before activation");
  tarn__graph_emit(graph, node);
  return y;
}

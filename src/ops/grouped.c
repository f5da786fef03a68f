#include "ops/grouped.h"

#include "graph/tangents.h"
#include "ops/activation.h"
#include "ops/linear.h"

// For all rows that the groups can have together: without dropped choices every row has one.
static double forward_flops(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__GROUPED_X], *y = node->out[TARN__LINEAR_Y];
  return 2.0 * (double)x->rows * (double)x->cols * (double)y->cols;
}

static double dweight_flops(const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ], *x = node->in[TARN__GROUPED_DWEIGHT_X];
  return node->dparam[0] ? 2.0 * (double)x->rows * (double)x->cols * (double)dz->cols : 0.0;
}

static double dx_flops(const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DX_DZ];
  return 2.0 * (double)dz->rows * (double)dz->cols * (double)node->out[0]->cols;
}

static const tarn__op op_dweight = {
    .id = TARN__OP_GROUPED_LINEAR_DWEIGHT, .name = "grouped_linear_dweight", .flops = dweight_flops};
static const tarn__op op_dx = {.id = TARN__OP_GROUPED_LINEAR_DX, .name = "grouped_linear_dx", .flops = dx_flops};

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__GROUPED_X], *weight = node->in[TARN__GROUPED_WEIGHT];
  tarn__tensor *bias = node->in[TARN__GROUPED_BIAS], *offsets = node->in[TARN__GROUPED_OFFSETS];
  const tarn__activation activation = *(const tarn__activation *)node->attr;
  tarn__tensor *saved = node->out[tarn__keeps_z(activation) ? TARN__LINEAR_Z : TARN__LINEAR_Y];
  tarn__tensor *dz = node->out[TARN__LINEAR_Y]->grad;
  if (activation != TARN__IDENTITY &&
      !tarn__linear_hand_slope(graph, &op_dx, TARN__GROUPED_DX_SAVED, dz, saved, activation))
    dz = tarn__linear_dz(graph, dz, saved, NULL, activation);
  const bool learns_bias = bias && bias->needs_grad;
  if (weight->needs_grad || learns_bias) {
    tarn__node *back = tarn__graph_node(graph, &op_dweight, 0);
    back->in[TARN__GROUPED_DWEIGHT_DZ] = dz;
    back->in[TARN__GROUPED_DWEIGHT_X] = x;
    back->in[TARN__GROUPED_DWEIGHT_OFFSETS] = offsets;
    back->dparam[0] = weight->needs_grad ? weight->param : NULL;
    back->dparam[1] = learns_bias ? bias->param : NULL;
    tarn__graph_emit(graph, back);
  }
  if (x->needs_grad) {
    tarn__node *back = tarn__graph_node(graph, &op_dx, sizeof(tarn__linear_attr));
    ((tarn__linear_attr *)back->attr)->activation = TARN__IDENTITY;
    back->in[TARN__GROUPED_DX_DZ] = dz;
    back->in[TARN__GROUPED_DX_WEIGHT] = weight;
    back->in[TARN__GROUPED_DX_OFFSETS] = offsets;
    back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__GROUPED_DX_PREVIOUS]);
    tarn__graph_emit(graph, back);
  }
}

// The activation's result, recomputed from its input.
static tarn__tensor *renew(tarn__graph *graph, const tarn__node *node) {
  return tarn__activate(graph, node->out[TARN__LINEAR_Z], *(const tarn__activation *)node->attr);
}

static const tarn__op op_tangent = {
    .id = TARN__OP_GROUPED_LINEAR, .name = "grouped_linear_tangent", .flops = forward_flops};

// The products of all directions without the bias, then the slope of the activation.
static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__activation activation = *(const tarn__activation *)node->attr;
  tarn__tensor *y = node->out[TARN__LINEAR_Y], *saved = y;
  if (tarn__keeps_z(activation))
    saved = tarn__tangent_keep(graph, node, TARN__LINEAR_Z, y->dtype, y->rows, y->cols, "before activation");
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof activation);
  *(tarn__activation *)push->attr = TARN__IDENTITY;
  push->in[TARN__GROUPED_X] = node->in[TARN__GROUPED_X]->tangent;
  push->in[TARN__GROUPED_WEIGHT] = node->in[TARN__GROUPED_WEIGHT];
  push->in[TARN__GROUPED_OFFSETS] = node->in[TARN__GROUPED_OFFSETS];
  push->in[TARN__GROUPED_BLOCK] = saved;
  push->out[TARN__LINEAR_Y] = tarn__tangent_new(graph, y, "tangent of grouped linear");
  tarn__graph_emit(graph, push);
  y->tangent = tarn__activation_tangent(graph, push->out[TARN__LINEAR_Y], saved, activation);
}

static const tarn__op op_grouped = {.id = TARN__OP_GROUPED_LINEAR,
                                    .name = "grouped_linear",
                                    .grad = gradient,
                                    .tangent = tangent,
                                    .renew = renew,
                                    .renew_out = TARN__LINEAR_Y,
                                    .renew_in = TARN__LINEAR_Z,
                                    .flops = forward_flops};

tarn__tensor *tarn__grouped_linear(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *weight,
                                   tarn__param *bias, tarn__activation activation) {
  const int64_t experts = offsets->cols - 1, n = weight->out;
  if (x->cols != weight->cols || x->dtype != weight->dtype || n < 1 || weight->rows != experts * n ||
      (bias && bias->cols != weight->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "grouped_linear: weight %s [%lld, %lld] does not fit its input",
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  tarn__node *node = tarn__graph_node(graph, &op_grouped, sizeof activation);
  *(tarn__activation *)node->attr = activation;
  node->in[TARN__GROUPED_X] = x;
  node->in[TARN__GROUPED_WEIGHT] = tarn__graph_param(graph, weight);
  node->in[TARN__GROUPED_BIAS] = bias ? tarn__graph_param(graph, bias) : NULL;
  node->in[TARN__GROUPED_OFFSETS] = offsets;
  tarn__tensor *y = node->out[TARN__LINEAR_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, n, "grouped linear");
  const bool backward =
      x->needs_grad || node->in[TARN__GROUPED_WEIGHT]->needs_grad || (bias && node->in[TARN__GROUPED_BIAS]->needs_grad);
  if (tarn__keeps_z(activation) && graph->training && backward)
    node->out[TARN__LINEAR_Z] = tarn__graph_tensor(graph, x->dtype, x->rows, n, "before activation");
  tarn__graph_emit(graph, node);
  return y;
}

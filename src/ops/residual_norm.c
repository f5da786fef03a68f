#include "ops/residual_norm.h"

#include "graph/tangents.h"
#include "ops/ops.h"

// Backward node. The gradient of x takes over the memory of the gradient of y.
static const tarn__op op_backward = {.id = TARN__OP_RESIDUAL_NORM_BACKWARD,
                                     .name = "residual_norm_backward",
                                     .in_place = true,
                                     .inplace_out = TARN__RN_DX,
                                     .inplace_in = TARN__RN_DY};

// The same without a norm, for the branch's gradient only.
static const tarn__op op_branch_backward = {.id = TARN__OP_RESIDUAL_BACKWARD,
                                            .name = "residual_backward",
                                            .in_place = true,
                                            .inplace_out = TARN__RN_DBRANCH,
                                            .inplace_in = TARN__RN_DSUM};

static bool wants(const tarn__tensor *tensor) { return tensor && tensor->needs_grad; }

// The parameter of a tensor, if there is one and its gradient is wanted.
static tarn__param *learner(const tarn__tensor *tensor) {
  return tensor && tarn__param_learns(tensor->param) ? tensor->param : NULL;
}

// No gradient reaches y (or there is no y): the gradient of the sum is that of x.
static void grad_of_sum(tarn__graph *graph, const tarn__node *node, tarn__tensor *dsum) {
  tarn__tensor *x = node->in[TARN__RN_X];
  tarn__tensor *branch = node->in[TARN__RN_BRANCH];
  if (wants(branch)) {
    tarn__node *back = tarn__graph_node(graph, &op_branch_backward, sizeof(tarn__residual_norm_attr));
    *(tarn__residual_norm_attr *)back->attr = *(const tarn__residual_norm_attr *)node->attr;
    back->in[TARN__RN_DSUM] = dsum;
    back->out[TARN__RN_DBRANCH] = tarn__graph_tensor(graph, branch->dtype, branch->rows, branch->cols, "gradient");
    tarn__graph_emit(graph, back);
    tarn__grad_add(graph, branch, back->out[TARN__RN_DBRANCH]);
  }
  if (wants(x)) tarn__grad_add(graph, x, dsum);
}

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__RN_X];
  tarn__tensor *branch = node->in[TARN__RN_BRANCH];
  tarn__tensor *sum = node->out[TARN__RN_SUM];
  tarn__tensor *y = node->out[TARN__RN_Y];
  tarn__tensor *dsum = sum ? sum->grad : NULL;
  if (dsum && ((const tarn__residual_norm_attr *)node->attr)->skip != 1.0)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "residual_norm: another reader of the sum of a skip");
  if (!y || !y->grad) {
    if (dsum) grad_of_sum(graph, node, dsum);
    return;
  }
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__residual_norm_attr));
  *(tarn__residual_norm_attr *)back->attr = *(const tarn__residual_norm_attr *)node->attr;
  back->in[TARN__RN_DY] = y->grad;
  back->in[TARN__RN_DSUM] = dsum;
  back->in[TARN__RN_SAVED] = sum ? sum : x;
  back->in[TARN__RN_SAVED_STATS] = node->out[TARN__RN_STATS];
  back->in[TARN__RN_SAVED_GAIN] = node->in[TARN__RN_GAIN];
  back->dparam[TARN__RN_DGAIN] = learner(node->in[TARN__RN_GAIN]);
  back->dparam[TARN__RN_DBIAS] = learner(node->in[TARN__RN_BIAS]);
  if (wants(x)) back->out[TARN__RN_DX] = tarn__grad_into(graph, x, &back->in[TARN__RN_PREVIOUS]);
  if (wants(branch))
    back->out[TARN__RN_DBRANCH] = tarn__graph_tensor(graph, branch->dtype, branch->rows, branch->cols, "gradient");
  tarn__graph_emit(graph, back);
  if (wants(branch)) tarn__grad_add(graph, branch, back->out[TARN__RN_DBRANCH]);
}

// The statistics written by the forward pass: two per row for LAYER, else one.
static tarn__tensor *keep_statistics(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RN_X];
  const bool centred = ((const tarn__residual_norm_attr *)node->attr)->form == TARN__NORM_LAYER;
  return tarn__tangent_keep(graph, node, TARN__RN_STATS, x->dtype == TARN__F64 ? TARN__F64 : TARN__F32, x->rows,
                            centred ? 2 : 1, "norm statistics");
}

// With a branch, the tangent of the sum (or of y, if the sum's is unwanted) takes over the memory of the branch's;
// without one, that of y takes over that of x's.
static const tarn__op op_residual_tangent = {.id = TARN__OP_RESIDUAL_NORM_TANGENT,
                                             .name = "residual_norm_tangent",
                                             .in_place = true,
                                             .inplace_out = TARN__RN_TANGENT_SUM,
                                             .inplace_in = TARN__RN_TANGENT_BRANCH};
static const tarn__op op_post_norm_tangent = {.id = TARN__OP_RESIDUAL_NORM_TANGENT,
                                              .name = "residual_norm_tangent",
                                              .in_place = true,
                                              .inplace_out = TARN__RN_TANGENT_Y,
                                              .inplace_in = TARN__RN_TANGENT_BRANCH};
static const tarn__op op_norm_tangent = {.id = TARN__OP_NORM_TANGENT,
                                         .name = "norm_tangent",
                                         .in_place = true,
                                         .inplace_out = TARN__RN_TANGENT_Y,
                                         .inplace_in = TARN__RN_TANGENT_X};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__RN_X], *branch = node->in[TARN__RN_BRANCH];
  tarn__tensor *sum = node->out[TARN__RN_SUM], *y = node->out[TARN__RN_Y];
  const bool summed = sum && (!y || tarn__tangent_wanted(sum));
  const tarn__op *op = !branch ? &op_norm_tangent : summed ? &op_residual_tangent : &op_post_norm_tangent;
  tarn__node *push = tarn__graph_node(graph, op, sizeof(tarn__residual_norm_attr));
  *(tarn__residual_norm_attr *)push->attr = *(const tarn__residual_norm_attr *)node->attr;
  push->in[TARN__RN_TANGENT_X] = x->tangent;
  push->in[TARN__RN_TANGENT_BRANCH] = branch ? branch->tangent : NULL;
  push->in[TARN__RN_TANGENT_SAVED] = sum ? sum : x;
  if (y) {
    push->in[TARN__RN_TANGENT_STATS] = keep_statistics(graph, node);
    push->in[TARN__RN_TANGENT_GAIN] = node->in[TARN__RN_GAIN];
    push->out[TARN__RN_TANGENT_Y] = y->tangent = tarn__tangent_new(graph, y, "tangent of norm");
  }
  if (summed) push->out[TARN__RN_TANGENT_SUM] = sum->tangent = tarn__tangent_new(graph, sum, "tangent of sum");
  tarn__graph_emit(graph, push);
}

// Recomputes y from the sum: the forward pass normalises the sum as stored.
static tarn__tensor *renew(tarn__graph *graph, const tarn__node *node);

// With a branch: the sum takes over its memory.
static const tarn__op op_residual = {.id = TARN__OP_RESIDUAL_NORM,
                                     .name = "residual_norm",
                                     .grad = grad,
                                     .tangent = tangent,
                                     .in_place = true,
                                     .inplace_out = TARN__RN_SUM,
                                     .inplace_in = TARN__RN_BRANCH,
                                     .renew = renew,
                                     .renew_out = TARN__RN_Y,
                                     .renew_in = TARN__RN_SUM};

// Without a branch: y takes over the memory of x.
static const tarn__op op_norm = {.id = TARN__OP_NORM,
                                 .name = "norm",
                                 .grad = grad,
                                 .tangent = tangent,
                                 .in_place = true,
                                 .inplace_out = TARN__RN_Y,
                                 .inplace_in = TARN__RN_X};

static tarn__tensor *renew(tarn__graph *graph, const tarn__node *node) {
  tarn__tensor *sum = node->out[TARN__RN_SUM];
  tarn__node *norm = tarn__graph_node(graph, &op_norm, sizeof(tarn__residual_norm_attr));
  *(tarn__residual_norm_attr *)norm->attr = *(const tarn__residual_norm_attr *)node->attr;
  ((tarn__residual_norm_attr *)norm->attr)->dropout = (tarn__dropout){0};
  ((tarn__residual_norm_attr *)norm->attr)->skip = 1.0;
  norm->in[TARN__RN_X] = sum;
  norm->in[TARN__RN_GAIN] = node->in[TARN__RN_GAIN];
  norm->in[TARN__RN_BIAS] = node->in[TARN__RN_BIAS];
  norm->out[TARN__RN_Y] = tarn__graph_tensor(graph, sum->dtype, sum->rows, sum->cols, "norm");
  tarn__graph_emit(graph, norm);
  return norm->out[TARN__RN_Y];
}

static bool is_vector_of(const tarn__param *param, const tarn__tensor *x) {
  return param && param->rows * param->cols == x->cols;
}

static bool fits(const tarn__tensor *x, const tarn__tensor *branch, const tarn__norm *norm) {
  bool fit = norm->gain || branch;
  if (branch) fit = fit && branch->rows == x->rows && branch->cols == x->cols && branch->dtype == x->dtype;
  if (norm->skip != 0.0) fit = fit && branch && norm->gain;
  if (norm->gain) fit = fit && norm->epsilon > 0.0;
  if (norm->gain && norm->form == TARN__NORM_SCALE)
    return fit && !norm->bias && norm->gain->rows * norm->gain->cols == 1;
  if (norm->gain) fit = fit && is_vector_of(norm->gain, x);
  if (norm->gain && norm->form == TARN__NORM_LAYER) return fit && is_vector_of(norm->bias, x);
  return fit && !norm->bias;
}

tarn__residual_out tarn__residual_norm(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                       tarn__norm norm) {
  if (!fits(x, branch, &norm))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "residual_norm: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, branch ? &op_residual : &op_norm, sizeof(tarn__residual_norm_attr));
  *(tarn__residual_norm_attr *)node->attr =
      (tarn__residual_norm_attr){.dropout = branch ? tarn__dropout_make(graph, dropout) : (tarn__dropout){0},
                                 .form = norm.form,
                                 .epsilon = norm.epsilon,
                                 .skip = norm.skip != 0.0 ? norm.skip : 1.0};
  node->in[TARN__RN_X] = x;
  node->in[TARN__RN_BRANCH] = branch;
  tarn__residual_out out = {.sum = x, .y = NULL};
  if (branch) out.sum = node->out[TARN__RN_SUM] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "residual sum");
  if (norm.gain) {
    node->in[TARN__RN_GAIN] = tarn__graph_param(graph, norm.gain);
    node->in[TARN__RN_BIAS] = norm.bias ? tarn__graph_param(graph, norm.bias) : NULL;
    out.y = node->out[TARN__RN_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "norm");
    const bool learns = tarn__param_learns(norm.gain) || (norm.bias && tarn__param_learns(norm.bias));
    if (graph->training && (wants(x) || wants(branch) || learns))
      node->out[TARN__RN_STATS] = tarn__graph_tensor(graph, x->dtype == TARN__F64 ? TARN__F64 : TARN__F32, x->rows,
                                                     norm.form == TARN__NORM_LAYER ? 2 : 1, "norm statistics");
  }
  tarn__graph_emit(graph, node);
  return out;
}

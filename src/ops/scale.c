#include "ops/scale.h"

#include "graph/tangents.h"

static const tarn__op op_backward = {.id = TARN__OP_SCALE_BACKWARD, .name = "scale_backward"};

// The parameter of a tensor, if there is one and its gradient is wanted.
static tarn__param *learner(const tarn__tensor *tensor) {
  return tensor && tarn__param_learns(tensor->param) ? tensor->param : NULL;
}

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SCALE_X], *gain = node->in[TARN__SCALE_GAIN], *dy = node->out[0]->grad;
  tarn__param *dgain = learner(gain), *dshift = learner(node->in[TARN__SCALE_SHIFT]);
  if (gain || dshift) {
    tarn__node *back = tarn__graph_node(graph, &op_backward, node->attr_bytes);
    if (node->attr) *(tarn__scale_share_spec *)back->attr = *(const tarn__scale_share_spec *)node->attr;
    back->in[TARN__SCALE_DY] = dy;
    back->in[TARN__SCALE_SAVED_X] = dgain ? x : NULL;
    back->in[TARN__SCALE_SAVED_GAIN] = gain;
    back->dparam[TARN__SCALE_DGAIN] = dgain;
    back->dparam[TARN__SCALE_DSHIFT] = dshift;
    if (gain && x->needs_grad) back->out[TARN__SCALE_DX] = tarn__grad_into(graph, x, &back->in[TARN__SCALE_PREVIOUS]);
    if (dgain || dshift || back->out[TARN__SCALE_DX]) tarn__graph_emit(graph, back);
  }
  // Only a shift: the gradient of x is dy.
  if (!gain && x->needs_grad) tarn__grad_add(graph, x, dy);
}

// With only a shift: that of x.
static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *gain = node->in[TARN__SCALE_GAIN];
  const tarn__scale_share_spec *share = node->attr;
  tarn__tensor *dx = node->in[TARN__SCALE_X]->tangent;
  if (share) {
    node->out[0]->tangent = tarn__scale_share(graph, dx, gain->param, share->of);
    return;
  }
  node->out[0]->tangent = gain ? tarn__scale(graph, dx, gain->param, NULL) : dx;
}

static const tarn__op op_scale = {
    .id = TARN__OP_SCALE, .name = "scale", .grad = grad, .tangent = tangent, .in_place = true, .cheap = true};

static bool is_number(const tarn__param *param) { return !param || (param->rows == 1 && param->cols == 1); }

tarn__tensor *tarn__scale(tarn__graph *graph, tarn__tensor *x, tarn__param *gain, tarn__param *shift) {
  if ((!gain && !shift) || !is_number(gain) || !is_number(shift))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "scale: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_scale, 0);
  node->in[TARN__SCALE_X] = x;
  node->in[TARN__SCALE_GAIN] = gain ? tarn__graph_param(graph, gain) : NULL;
  node->in[TARN__SCALE_SHIFT] = shift ? tarn__graph_param(graph, shift) : NULL;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "scale");
  tarn__graph_emit(graph, node);
  return y;
}

tarn__tensor *tarn__scale_share(tarn__graph *graph, tarn__tensor *x, tarn__param *shares, int64_t of) {
  const tarn__scale_share_spec spec = {of};
  if (shares->rows != 1 || of < 0 || of >= shares->cols)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "scale: there is no share %lld", (long long)of);
  tarn__node *node = tarn__graph_node(graph, &op_scale, sizeof spec);
  *(tarn__scale_share_spec *)node->attr = spec;
  node->in[TARN__SCALE_X] = x;
  node->in[TARN__SCALE_GAIN] = tarn__graph_param(graph, shares);
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "share");
  tarn__graph_emit(graph, node);
  return y;
}

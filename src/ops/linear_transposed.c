#include "ops/linear_transposed.h"

#include "graph/tangents.h"
#include "ops/linear.h"

static double flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->out[0]->cols;
}

static double dweight_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->in[1]->cols;
}

static const tarn__op dx_op = {.id = TARN__OP_LINEAR, .name = "linear_transposed_dx", .flops = flops};

static const tarn__op dweight_op = {
    .id = TARN__OP_LINEAR_DWEIGHT, .name = "linear_transposed_dweight", .flops = dweight_flops};

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *weight = node->in[1], *dy = node->out[0]->grad;
  if (weight->needs_grad) {
    tarn__node *back = tarn__graph_node(graph, &dweight_op, 0);
    back->in[0] = x;
    back->in[1] = dy;
    back->dparam[0] = weight->param;
    tarn__graph_emit(graph, back);
  }
  if (x->needs_grad) {
    tarn__node *back = tarn__graph_node(graph, &dx_op, sizeof(tarn__linear_attr));
    ((tarn__linear_attr *)back->attr)->activation = TARN__IDENTITY;
    back->in[0] = dy;
    back->in[1] = weight;
    back->out[TARN__LINEAR_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "linear_transposed_dx");
    tarn__graph_emit(graph, back);
    tarn__grad_add(graph, x, back->out[TARN__LINEAR_Y]);
  }
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__linear_transposed(graph, node->in[0]->tangent, node->in[1]->param);
}

static const tarn__op op = {
    .id = TARN__OP_LINEAR_DX, .name = "linear_transposed", .grad = gradient, .tangent = tangent, .flops = flops};

tarn__tensor *tarn__linear_transposed(tarn__graph *graph, tarn__tensor *x, tarn__param *weight) {
  if (x->cols != weight->rows || x->dtype != weight->dtype)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "linear_transposed: weight %s [%lld, %lld] does not fit its input",
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  tarn__node *node = tarn__graph_node(graph, &op, 0);
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, weight);
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->cols, "linear_transposed");
  tarn__graph_emit(graph, node);
  return y;
}

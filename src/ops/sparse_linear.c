#include "ops/sparse_linear.h"

// Counts the expected entries: the drawn number, and with it the count, would vary slightly with the seed.
static double flops(const tarn__node *node) {
  const tarn__param *weight = node->in[TARN__SPARSE_LINEAR_WEIGHT]->param;
  return 2.0 * (double)node->in[TARN__SPARSE_LINEAR_X]->rows * (double)weight->rows * (double)weight->cols *
         (1.0 - weight->sparsity);
}

static const tarn__op dx_op = {.id = TARN__OP_SPARSE_LINEAR, .name = "sparse_linear_dx", .flops = flops};

static void gradient(tarn__graph *graph, tarn__node *forward) {
  tarn__tensor *x = forward->in[TARN__SPARSE_LINEAR_X];
  if (!x->needs_grad) return;
  tarn__node *node = tarn__graph_node(graph, &dx_op, sizeof(tarn__sparse_linear_attr));
  ((tarn__sparse_linear_attr *)node->attr)->transpose = true;
  node->in[TARN__SPARSE_LINEAR_X] = forward->out[0]->grad;
  node->in[TARN__SPARSE_LINEAR_WEIGHT] = forward->in[TARN__SPARSE_LINEAR_WEIGHT];
  node->out[0] = tarn__grad_into(graph, x, &node->in[TARN__SPARSE_LINEAR_PREVIOUS]);
  tarn__graph_emit(graph, node);
}

// The product of the directions, block by block.
static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent =
      tarn__sparse_linear(graph, node->in[TARN__SPARSE_LINEAR_X]->tangent, node->in[TARN__SPARSE_LINEAR_WEIGHT]->param);
}

static const tarn__op op = {
    .id = TARN__OP_SPARSE_LINEAR, .name = "sparse_linear", .grad = gradient, .tangent = tangent, .flops = flops};

tarn__tensor *tarn__sparse_linear(tarn__graph *graph, tarn__tensor *x, tarn__param *weight) {
  if (x->cols != weight->cols || x->dtype != weight->dtype || weight->entries == 0 || weight->trained)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL,
                     "sparse_linear: the weight %s does not fit its input, is trained, or is not stored as its entries",
                     weight->name);
  tarn__node *node = tarn__graph_node(graph, &op, sizeof(tarn__sparse_linear_attr));
  node->in[TARN__SPARSE_LINEAR_X] = x;
  node->in[TARN__SPARSE_LINEAR_WEIGHT] = tarn__graph_param(graph, weight);
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->rows, "sparse_linear");
  tarn__graph_emit(graph, node);
  return y;
}

// The output layer of decoding: only the best next tokens.
#include "ops/output_top.h"

#include "ops/ops.h"

static double flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[1]->rows * (double)node->in[1]->cols;
}

// A choice is not differentiable; a model may be trained on what follows from it.
static void no_gradient(tarn__graph *graph, tarn__node *node) {
  (void)graph;
  (void)node;
}

static const tarn__op op_output_top = {
    .id = TARN__OP_OUTPUT_TOP, .name = "output_top", .grad = no_gradient, .flops = flops};

tarn__top tarn__output_top(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias, int64_t best,
                           int32_t always) {
  if (x->cols != table->cols || x->dtype != table->dtype || (bias && bias->cols != table->rows) || best < 1 ||
      always < 0 || always >= table->rows)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output_top: %s [%lld, %lld] does not fit its input, bias or words",
                     table->name, (long long)table->rows, (long long)table->cols);
  tarn__node *node = tarn__graph_node(graph, &op_output_top, sizeof(tarn__output_top_attr));
  *(tarn__output_top_attr *)node->attr = (tarn__output_top_attr){best, always};
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, table);
  node->in[2] = bias ? tarn__graph_param(graph, bias) : NULL;
  const tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__top top = {tarn__graph_tensor(graph, dtype, x->rows, best + 1, "best_log_probabilities"),
                   tarn__graph_tensor(graph, TARN__I32, x->rows, best, "best_ids")};
  node->out[0] = top.values;
  node->out[1] = top.ids;
  tarn__graph_emit(graph, node);
  top.values->needs_grad = top.ids->needs_grad = false;
  return top;
}

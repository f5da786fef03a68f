#include "graph/graph.h"

tarn_status tarn__graph_run(tarn__graph *graph, const tarn__exec *exec) {
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    const tarn__op *op = node->op;
    tarn__kernel kernel = op->cpu;
    if (graph->backend == TARN__REFERENCE) kernel = graph->dtype == TARN__F64 ? op->reference_f64 : op->reference_f32;
    TARN_REQUIRE(kernel, INTERNAL, "op %s has no kernel for this backend", op->name);
    TARN_TRY(kernel(exec, node));
  }
  return TARN_STATUS_OK;
}

int tarn__param_accumulate(tarn__param *param) {
  int accumulate = param->grad_written;
  param->grad_written = true;
  return accumulate;
}

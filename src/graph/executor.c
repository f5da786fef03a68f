#include "base/spinning.h"
#include "graph/profile.h"

static tarn_status run_node(const tarn__graph *graph, const tarn__exec *exec, const tarn__node *node) {
  const tarn__op *op = node->op;
  tarn__kernel kernel = graph->device->kernel(op, graph->dtype);
  TARN_REQUIRE(kernel, INTERNAL, "op %s has no kernel on the device %s", op->name, graph->device->name);
  if (op->check) TARN_TRY(op->check(node));
  return kernel(exec, node);
}

static tarn_status run_measured(const tarn__graph *graph, const tarn__exec *exec, size_t n) {
  double begin = tarn__profile_clock(exec->profile);
  TARN_TRY(run_node(graph, exec, graph->nodes[n]));
  return tarn__profile_node(exec->profile, graph->nodes[n], n >= graph->forward_count, begin);
}

tarn_status tarn__graph_run(tarn__graph *graph, const tarn__exec *exec) {
  tarn__spinning_look();
  for (size_t n = 0; n < graph->node_count; n++)
    TARN_TRY(exec->profile ? run_measured(graph, exec, n) : run_node(graph, exec, graph->nodes[n]));
  return TARN_STATUS_OK;
}

int tarn__param_accumulate(tarn__param *param) {
  int accumulate = param->grad_written;
  param->grad_written = true;
  return accumulate;
}

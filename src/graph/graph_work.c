#include "graph/graph_work.h"

double tarn__graph_operations(const tarn__graph *graph) {
  double operations = 0.0;
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    if (node->op->flops) operations += node->op->flops(node);
    if (node->op->gradient_flops) operations += node->op->gradient_flops(node);
  }
  return operations;
}

#include "graph/graph_work.h"

void tarn__graph_work(const tarn__graph *graph, double *operations, double *bytes) {
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    if (node->op->flops) *operations += node->op->flops(node);
    if (node->op->gradient_flops) *operations += node->op->gradient_flops(node);
    if (!node->joins) *bytes += tarn__node_bytes(node);
  }
}

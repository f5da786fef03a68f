// The amount of work in a graph.
#ifndef TARN_GRAPH_GRAPH_WORK_H
#define TARN_GRAPH_GRAPH_WORK_H

#include "graph/graph.h"

// Adds the work of one run of a planned graph: floating-point operations as counted by its ops, including the gradients
// of parameters, and memory traffic by tarn__node_bytes().
void tarn__graph_work(const tarn__graph *graph, double *operations, double *bytes);

#endif

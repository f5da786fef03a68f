// How much work a graph is.
#ifndef TARN_GRAPH_GRAPH_WORK_H
#define TARN_GRAPH_GRAPH_WORK_H

#include "graph/graph.h"

// Adds what running a planned graph once takes: floating-point operations, as its ops count them, those of gradients of
// parameters included; and bytes that go to and from memory, by tarn__node_bytes().
void tarn__graph_work(const tarn__graph *graph, double *operations, double *bytes);

#endif

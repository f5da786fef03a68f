// The amount of work in a graph.
#ifndef TARN_GRAPH_GRAPH_WORK_H
#define TARN_GRAPH_GRAPH_WORK_H

#include "graph/graph.h"

// Memory traffic is measured as nodes run (tarn__exec, moved_bytes): that of nodes joined to others is left out.
//
// Floating-point operations of one run of a planned graph as counted by its ops, including the gradients of parameters.
double tarn__graph_operations(const tarn__graph *graph);

#endif

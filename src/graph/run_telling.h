// A run of a graph with progress reports.
#ifndef TARN_GRAPH_RUN_TELLING_H
#define TARN_GRAPH_RUN_TELLING_H

#include "graph/graph.h"

// As tarn__graph_run(), but calls `ran` after each node with the number of nodes run. `ran` may be NULL.
tarn_status tarn__graph_run_telling(tarn__graph *graph, const tarn__exec *exec,
                                    tarn_status (*ran)(void *user, size_t nodes), void *user) TARN_CHECKED;

#endif

// A run of a graph that somebody follows.
#ifndef TARN_GRAPH_RUN_TELLING_H
#define TARN_GRAPH_RUN_TELLING_H

#include "graph/graph.h"

// tarn__graph_run() that says after each node how many have run. `ran` may be NULL.
tarn_status tarn__graph_run_telling(tarn__graph *graph, const tarn__exec *exec,
                                    tarn_status (*ran)(void *user, size_t nodes), void *user) TARN_CHECKED;

#endif

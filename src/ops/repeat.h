// The rows of the forward pass for all directions of tangents (graph/tangents.h).
#ifndef TARN_OPS_REPEAT_H
#define TARN_OPS_REPEAT_H

#include "graph/graph.h"

// y [directions * R, d]: the rows of x [R, d], once for each direction, so that ops of two factors, one of which moves,
// are their own tangent rules.
tarn__tensor *tarn__repeat(tarn__graph *graph, tarn__tensor *x);

#endif

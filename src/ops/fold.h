// Pairs of rows as one row each.
#ifndef TARN_OPS_FOLD_H
#define TARN_OPS_FOLD_H

#include "graph/graph.h"

// y [R / 2, 2 d]: row i is row 2 i of x [R, d] followed by row 2 i + 1. The memory is that of x, and nothing is
// computed; x must have no other reader of its gradient. R is even.
tarn__tensor *tarn__fold(tarn__graph *graph, tarn__tensor *x);

#endif

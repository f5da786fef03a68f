// The op linear with its weight transposed, for a factor of the input embedding shared with the output layer.
#ifndef TARN_OPS_LINEAR_TRANSPOSED_H
#define TARN_OPS_LINEAR_TRANSPOSED_H

#include "graph/graph.h"

// y [R, n] = x [R, m] weight [m, n]. Its kernel is that of linear_dx, its gradients' those of linear and
// linear_dweight:
//   dx = dy weight^T      dweight = x^T dy
tarn__tensor *tarn__linear_transposed(tarn__graph *graph, tarn__tensor *x, tarn__param *weight);

#endif

// The op sparse_linear: a product with a frozen weight stored as its entries (graph/entries.h):
//   y [R, n] = x [R, k] W^T,   W [n, k]
// Gradient: dx = dy W, the same op with the transpose; none for W.
#ifndef TARN_OPS_SPARSE_LINEAR_H
#define TARN_OPS_SPARSE_LINEAR_H

#include "graph/graph.h"

tarn__tensor *tarn__sparse_linear(tarn__graph *graph, tarn__tensor *x, tarn__param *weight);

// PREVIOUS: the result is added to it, in its memory; NULL: nothing.
enum { TARN__SPARSE_LINEAR_X, TARN__SPARSE_LINEAR_WEIGHT, TARN__SPARSE_LINEAR_PREVIOUS };

typedef struct tarn__sparse_linear_attr {
  bool transpose;  // x [R, n] is multiplied by W
} tarn__sparse_linear_attr;

#endif

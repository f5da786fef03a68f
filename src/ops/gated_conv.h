// The op gated_conv: a depthwise convolution of width 3 within sentences, with a gate, for the network that predicts
// gradients (parts/backskip.h):
//   y[t, c] = sigmoid(u[t, c] + v[t, c]) * sum over j = -1, 0, 1 of kernel[j + 1, c] * x[t + j, c]
// Rows t + j of another sentence count as zeros. It is linear in x.
//
// Nodes:
//   gated_conv           in: x, u, v, offsets, kernel              out: y
//   gated_conv_backward  in: dy, x, u, v, offsets, kernel          out: dx, du, dv, each or NULL    dparam: kernel or
//   NULL
//   gated_conv_tangent   in: x, u, v, offsets, kernel, and the tangents of x, u, v, each or NULL    out: dy
#ifndef TARN_OPS_GATED_CONV_H
#define TARN_OPS_GATED_CONV_H

#include "graph/graph.h"

enum { TARN__GC_X, TARN__GC_U, TARN__GC_V, TARN__GC_OFFSETS, TARN__GC_KERNEL };
enum {
  TARN__GC_DY,
  TARN__GC_SAVED_X,
  TARN__GC_SAVED_U,
  TARN__GC_SAVED_V,
  TARN__GC_SAVED_OFFSETS,
  TARN__GC_SAVED_KERNEL
};
enum { TARN__GC_DX, TARN__GC_DU, TARN__GC_DV };
enum { TARN__GC_TANGENTS = TARN__GC_KERNEL + 1 };

#endif

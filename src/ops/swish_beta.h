// Swish with the number beta (Ramachandran, Zoph, Le 2017, arXiv 1710.05941), and its gate (Shazeer 2020, arXiv
// 2002.05202); s(z) = 1 / (1 + e^-z):
//   y [R, d]   = x s(beta x)                       x [R, d]
//   y [R, d]   = left * right s(beta right)        gated: x [R, 2 d] = left | right
// beta is a constant or, if set, the parameter `learned` [1, 1]. Gradient: to x, and to the parameter:
//   dy / dx = s + beta x s (1 - s),  dy / dbeta = x^2 s (1 - s),  s = s(beta x)
// Of sorted rows of experts (ops/route.h) only those before the last of `offsets` are used: no others are read,
// written, or summed for the gradient of beta.
#ifndef TARN_OPS_SWISH_BETA_H
#define TARN_OPS_SWISH_BETA_H

#include "graph/graph.h"

typedef struct tarn__swish_attr {
  double beta;      // ignored if learnt
  int64_t gated;    // 0 or 1
  int64_t forward;  // 1: a tangent node, see below
} tarn__swish_attr;

// offsets: I32 [1, E + 1], as tarn__route() makes them; NULL: all rows are used.
tarn__tensor *tarn__swish_beta(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, double beta,
                               tarn__param *learned, bool gated);

// Forward: X and BETA, NULL if constant. Backward: PREVIOUS is the gradient of x so far, whose memory the output
// shares, or NULL; the output is NULL if x needs none, and dparam[0] is the parameter, if trained. Tangent nodes use
// the same kernels: DY is the tangent of x [directions R, *], and the output that of y. OFFSETS, forward and backward:
// NULL if all rows are used; tangents cover all rows separately.
enum { TARN__SWISH_X, TARN__SWISH_BETA, TARN__SWISH_DY, TARN__SWISH_PREVIOUS, TARN__SWISH_OFFSETS };

// The number of used rows among `rows`.
static inline int64_t tarn__swish_rows(const tarn__node *node, int64_t rows) {
  const tarn__tensor *offsets = node->in[TARN__SWISH_OFFSETS];
  return offsets ? ((const int32_t *)offsets->data)[offsets->cols - 1] : rows;
}

#endif

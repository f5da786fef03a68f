// Products of groups of rows, each with its own matrix: those of experts, whose rows are adjacent (ops/route.h).
//
//   grouped_linear          y rows of group e = act(x weight_e^T + bias_e): rows offsets[e] .. offsets[e + 1] - 1, with
//                           rows [e n, (e + 1) n) of weight [E n, m], and columns [e n, (e + 1) n) of bias [1, E n]
//   grouped_linear_dweight  dweight_e (+)= dz_e^T x_e, dbias_e (+)= column sums of dz_e
//   grouped_linear_dx       dx_e (+)= dz_e weight_e
//
// Rows after the last group are unused in x and y. The bits of a row do not depend on its group. The gradient of the
// activation is that of linear (ops/linear.h): where the newest node is the grouped_linear_dx that wrote dy, that also
// takes it through the activation.
#ifndef TARN_OPS_GROUPED_H
#define TARN_OPS_GROUPED_H

#include "ops/ops.h"

// y [M, n] of x [M, m]; weight->out is n. bias may be NULL. offsets: I32 [1, E + 1], as tarn__route() makes them.
tarn__tensor *tarn__grouped_linear(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *weight,
                                   tarn__param *bias, tarn__activation activation);

// Internal; the attribute of grouped_linear is tarn__activation, that of dx tarn__linear_attr. Outputs of
// grouped_linear are those of linear. BLOCK, for tangents: a tensor of the forward pass, to whose rows the offsets
// refer; x and y are sequences of such blocks of rows. NULL: x has one block.
enum { TARN__GROUPED_X, TARN__GROUPED_WEIGHT, TARN__GROUPED_BIAS, TARN__GROUPED_OFFSETS, TARN__GROUPED_BLOCK };
static inline int64_t tarn__grouped_block(const tarn__node *node) {
  return node->in[node->in[TARN__GROUPED_BLOCK] ? TARN__GROUPED_BLOCK : TARN__GROUPED_X]->rows;
}
static inline int64_t tarn__grouped_blocks(const tarn__node *node) {
  const int64_t rows = tarn__grouped_block(node);
  return rows > 0 ? node->in[TARN__GROUPED_X]->rows / rows : 0;
}
// dweight: DZ and X and OFFSETS; dparam: weight or NULL, bias or NULL. dx: DZ, WEIGHT, OFFSETS, PREVIOUS; with SAVED
// (as in ops/linear.h) it is multiplied by the slope of the attribute's activation.
enum { TARN__GROUPED_DWEIGHT_DZ, TARN__GROUPED_DWEIGHT_X, TARN__GROUPED_DWEIGHT_OFFSETS };
enum {
  TARN__GROUPED_DX_DZ,
  TARN__GROUPED_DX_WEIGHT,
  TARN__GROUPED_DX_OFFSETS,
  TARN__GROUPED_DX_PREVIOUS,
  TARN__GROUPED_DX_SAVED
};

#endif

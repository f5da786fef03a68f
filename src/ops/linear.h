// Internals of the op linear: its nodes.
//
//   linear          in: x, weight, bias or NULL            out: y, z (tarn__keeps_z(): y = act(z)) or NULL
//   linear_dz       in: dy, y (relu), z (others) or NULL   out: dz, in the memory of dy, or NULL   dparam: bias or NULL
//   linear_dweight  in: dz, x                                                       dparam: weight, bias or NULL
//   linear_dx       in: dz, weight, gradient so far, saved out: dx = (gradient so far + dz weight) * act'(saved)
//
// A linear whose y is the input of another one needs no linear_dz for its activation: the linear_dx of the other has
// `saved`, its y or z as above (NULL: dx is the gradient of the input itself). linear_dweight then adds up the bias.
#ifndef TARN_OPS_LINEAR_H
#define TARN_OPS_LINEAR_H

#include "graph/graph.h"
#include "ops/ops.h"

// Outputs of linear.
enum { TARN__LINEAR_Y, TARN__LINEAR_Z };

// Inputs of linear_dx after the first two.
enum { TARN__LINEAR_DX_PREVIOUS = 2, TARN__LINEAR_DX_SAVED };

// Of linear, linear_dz and linear_dx.
typedef struct tarn__linear_attr {
  tarn__activation activation;
} tarn__linear_attr;

// The gradient before an activation from dy after it: in the memory of dy, or dy itself without an activation. saved:
// the tensor from which the activation's gradient is computed, as above. Also adds the gradient of `bias` (NULL: none).
tarn__tensor *tarn__linear_dz(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *saved, tarn__param *bias,
                              tarn__activation activation);

// Has the product that wrote dy, which must be the newest node and of op `op`, multiply it by the activation's slope as
// well, from `saved`, which becomes its input `place`; false: it cannot, and nothing is changed.
bool tarn__linear_hand_slope(tarn__graph *graph, const tarn__op *op, int place, tarn__tensor *dy, tarn__tensor *saved,
                             tarn__activation activation);

#endif

// Inside of the activations, which stand in ops/activation_table.h.
// The gradient of relu needs no more than the sign of y. The others keep x (z of the op linear). Where one of them
// follows a product it is part of the op linear.
//   activation          in: x           out: y
//   activation_tangent  in: dx, saved   out: dy [k R, n] = act'(saved) dx; saved [R, n] is x, of relu x or y
#ifndef TARN_OPS_ACTIVATION_H
#define TARN_OPS_ACTIVATION_H

#include "ops/ops.h"

// Whether the gradient needs what the activation was applied to.
static inline bool tarn__keeps_z(tarn__activation activation) {
  return activation != TARN__IDENTITY && activation != TARN__RELU;
}

enum { TARN__ACTIVATION_DX, TARN__ACTIVATION_SAVED };

// The tangent behind an activation from that before it, dx: dx itself without an activation.
tarn__tensor *tarn__activation_tangent(tarn__graph *graph, tarn__tensor *dx, tarn__tensor *saved,
                                       tarn__activation form);

#endif

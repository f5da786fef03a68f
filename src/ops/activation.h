// Internals of the activations of ops/activation_table.h.
// The gradient of relu needs only the sign of y; the others keep x (z of the op linear). An activation after a product
// is part of the op linear.
//   activation          in: x           out: y
//   activation_tangent  in: dx, saved   out: dy [k R, n] = act'(saved) dx; saved [R, n] is x, of relu x or y
#ifndef TARN_OPS_ACTIVATION_H
#define TARN_OPS_ACTIVATION_H

#include "ops/ops.h"

// Whether the gradient needs the activation's input.
static inline bool tarn__keeps_z(tarn__activation activation) {
  return activation != TARN__IDENTITY && activation != TARN__RELU;
}

enum { TARN__ACTIVATION_DX, TARN__ACTIVATION_SAVED };

// The tangent after an activation from dx before it: dx itself without an activation.
tarn__tensor *tarn__activation_tangent(tarn__graph *graph, tarn__tensor *dx, tarn__tensor *saved,
                                       tarn__activation form);

#endif

// Inside of the activations. Phi is the distribution function of the normal distribution, sigma(x) = 1 / (1 + e^-x).
//   TARN__IDENTITY      y = x
//   TARN__RELU          y = max(x, 0)
//   TARN__GELU          y = x Phi(x)                                                      Hendrycks and Gimpel 2016
//   TARN__GELU_TANH     y = x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)      the same; that of GPT-2
//   TARN__RELU_SQUARED  y = max(x, 0)^2                                                   So et al. 2021
//   TARN__ELU           y = x where x > 0, else e^x - 1                                   Clevert et al. 2016
//   TARN__SELU          y = lambda x where x > 0, else lambda alpha (e^x - 1)             Klambauer et al. 2017
//   TARN__SWISH         y = x sigma(x)                                                    Ramachandran et al. 2017
//   TARN__SIGMOID       y = sigma(x)
// The gradient of relu needs no more than the sign of y. The others keep x (z of the op linear). Where one of them
// follows a product it is part of the op linear.
//   activation          in: x           out: y
//   activation_tangent  in: dx, saved   out: dy [k R, n] = act'(saved) dx; saved [R, n] is x, of relu x or y
#ifndef TARN_OPS_ACTIVATION_H
#define TARN_OPS_ACTIVATION_H

#include "ops/ops.h"

// Of SELU: the fixed point of mean 0 and variance 1.
#define TARN__SELU_LAMBDA 1.0507009873554804934
#define TARN__SELU_ALPHA 1.6732632423543772848

// Those that keep z, for kernels that are compiled once for each.
#define TARN__KEPT_ACTIVATIONS(X) \
  X(TARN__GELU)                   \
  X(TARN__GELU_TANH)              \
  X(TARN__RELU_SQUARED)           \
  X(TARN__ELU)                    \
  X(TARN__SELU)                   \
  X(TARN__SWISH)                  \
  X(TARN__SIGMOID)

// Whether the gradient needs what the activation was applied to.
static inline bool tarn__keeps_z(tarn__activation activation) {
  return activation != TARN__IDENTITY && activation != TARN__RELU;
}

enum { TARN__ACTIVATION_DX, TARN__ACTIVATION_SAVED };

// The tangent behind an activation from that before it, dx: dx itself without an activation.
tarn__tensor *tarn__activation_tangent(tarn__graph *graph, tarn__tensor *dx, tarn__tensor *saved,
                                       tarn__activation form);

#endif

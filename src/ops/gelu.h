// Inside of GELU (Hendrycks and Gimpel 2016), in its two forms:
//   TARN__GELU       y = x Phi(x), Phi the distribution function of the normal distribution
//   TARN__GELU_TANH  y = x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3): that of GPT-2
// It has no inverse, so its gradient needs x, which is kept. Where it follows a product it is part of the op linear.
//   gelu  in: x   out: y
#ifndef TARN_OPS_GELU_H
#define TARN_OPS_GELU_H

#include "ops/ops.h"

static inline bool tarn__is_gelu(tarn__activation activation) {
  return activation == TARN__GELU || activation == TARN__GELU_TANH;
}

#endif

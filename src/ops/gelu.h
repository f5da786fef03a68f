// Inside of GELU (Hendrycks and Gimpel 2016), in its two forms:
//   TARN__GELU       y = x Phi(x), Phi the distribution function of the normal distribution
//   TARN__GELU_TANH  y = x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3): that of GPT-2
// It has no inverse, so its gradient needs x, which is kept. Where it follows a product it is part of the op linear.
//   gelu  in: x   out: y
#ifndef TARN_OPS_GELU_H
#define TARN_OPS_GELU_H

#include "device/variant.h"
#include "ops/ops.h"

static inline bool tarn__is_gelu(tarn__activation activation) {
  return activation == TARN__GELU || activation == TARN__GELU_TANH;
}

// References of one number: the value, and the derivative.
float tarn__gelu_value_f32(float x, tarn__activation form);
double tarn__gelu_value_f64(double x, tarn__activation form);
float tarn__gelu_slope_f32(float x, tarn__activation form);
double tarn__gelu_slope_f64(double x, tarn__activation form);

tarn_status tarn__gelu_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__gelu_ref_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__gelu_kernels {
  // Elements [first, last) of y from those of x; y may be x.
  void (*forward)(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first, int64_t last);
} tarn__gelu_kernels;

TARN__TABLES(tarn__gelu_kernels);

// The elements of some rows and columns of a matrix whose rows are `ld` elements apart, on the calling thread.
void tarn__gelu_block(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t ld, int64_t row,
                      int64_t rows, int64_t column, int64_t columns);

#endif

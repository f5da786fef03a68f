#include <math.h>

#include "device/cpu/adam_kernels.h"
#include "device/cpu/row_cpu.h"
#include "device/cpu/vec_double_cpu.h"

enum { PIECE = 512 };

static inline __attribute__((always_inline)) void step_with(float *restrict master, float *restrict moment1,
                                                            float *restrict moment2, uint16_t *restrict value,
                                                            const float *restrict grad, bool zero, int64_t n,
                                                            const tarn__adam_floats *factors) {
  const tarn__adam_floats f = *factors;
  for (int64_t first = 0; first < n; first += PIECE) {
    int64_t end = n - first < PIECE ? n : first + PIECE;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
      float w = master[i];
      float g = zero ? tarn__fma(w, f.decay_gradient, 0.0f * f.gradient)
                     : tarn__fma(grad[i], f.gradient, w * f.decay_gradient);
      float m = tarn__fma(g - moment1[i], f.beta1_rest, moment1[i]);
      float v = tarn__fma(moment2[i], f.beta2, g * g * f.beta2_rest);
      moment1[i] = m;
      moment2[i] = v;
      float change = f.step_size * (m / tarn__fma(sqrtf(v), f.inverse_correction2, f.epsilon));
      master[i] = tarn__fma(w, f.keep_weight, -change);
    }
    if (value != NULL) tarn__row_to_bf16(value + first, master + first, end - first);
  }
}

static void step(float *master, float *moment1, float *moment2, uint16_t *value, const float *grad, int64_t n,
                 const tarn__adam_floats *factors) {
  grad != NULL ? step_with(master, moment1, moment2, value, grad, false, n, factors)
               : step_with(master, moment1, moment2, value, grad, true, n, factors);
}

static double squares(const float *x, int64_t n) { return tarn__vec_double_dot(x, x, n); }

const tarn__adam_kernels TARN__FAST(tarn__adam_kernels) = {.step = step, .squares = squares};

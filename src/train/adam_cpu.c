#include <math.h>

#include "ops/row_cpu.h"
#include "train/adam.h"

enum { PIECE = 512 };

static inline __attribute__((always_inline)) void step_with(float *restrict master, float *restrict moment1,
                                                            float *restrict moment2, uint16_t *restrict value,
                                                            const float *restrict grad, bool zero, int64_t n,
                                                            const tarn__adam_factors *factors) {
  const tarn__adam_factors f = *factors;
  for (int64_t first = 0; first < n; first += PIECE) {
    int64_t end = n - first < PIECE ? n : first + PIECE;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
      float w = master[i];
      float g = (zero ? 0.0f : grad[i]) * f.gradient + w * f.decay_gradient;
      float m = moment1[i] + (g - moment1[i]) * f.beta1_rest;
      float v = moment2[i] * f.beta2 + g * g * f.beta2_rest;
      moment1[i] = m;
      moment2[i] = v;
      master[i] = w * f.keep_weight - f.step_size * (m / (sqrtf(v) * f.inverse_correction2 + f.epsilon));
    }
    if (value != NULL) tarn__row_to_bf16(value + first, master + first, end - first);
  }
}

static void step(float *master, float *moment1, float *moment2, uint16_t *value, const float *grad, int64_t n,
                 const tarn__adam_factors *factors) {
  grad != NULL ? step_with(master, moment1, moment2, value, grad, false, n, factors)
               : step_with(master, moment1, moment2, value, grad, true, n, factors);
}

static double squares(const float *x, int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sum;
}

const tarn__adam_kernels TARN__FAST(tarn__adam_kernels) = {.step = step, .squares = squares};

// GELU of a register, and its derivative, for fast kernels. Each takes one exponential.
#ifndef TARN_DEVICE_CPU_GELU_VEC_H
#define TARN_DEVICE_CPU_GELU_VEC_H

#include "device/cpu/vec_cpu.h"
#include "ops/gelu.h"

// sqrt(2 / pi), log2(e) / 2 and 1 / sqrt(2 pi).
#define TARN__GELU_ROOT 0.7978845608028654f
#define TARN__GELU_CUBE 0.044715f
#define TARN__GELU_HALF_LOG2E 0.7213475204444817f
#define TARN__GELU_DENSITY 0.3989422804014327f

// Phi(x), and e = exp(-x^2 / 2). The error function of Abramowitz and Stegun 7.1.26, exact to 1.5e-7.
TARN__VEC_INLINE tarn__vec tarn__gelu_phi(tarn__vec x, tarn__vec *e) {
  const tarn__vec size = (tarn__vec)((tarn__vec_int)x & INT32_MAX);
  *e = tarn__vec_exp2(x * x * -TARN__GELU_HALF_LOG2E);
  const tarn__vec t = 1.0f / tarn__vec_axpy(0.3275911f * 0.7071067811865476f, size, tarn__vec_all(1.0f));
  tarn__vec p = tarn__vec_horner(tarn__vec_all(1.061405429f), t, -1.453152027f);
  p = tarn__vec_horner(p, t, 1.421413741f);
  p = tarn__vec_horner(p, t, -0.284496736f);
  p = tarn__vec_horner(p, t, 0.254829592f);
  const tarn__vec tail = p * t * *e * 0.5f;
  return tarn__vec_select(x < 0.0f, tail, 1.0f - tail);
}

// 2 u of the form with tanh: (1 + tanh(u)) / 2 is the sigmoid of it.
TARN__VEC_INLINE tarn__vec tarn__gelu_angle(tarn__vec x) {
  return x * tarn__vec_axpy(2.0f * TARN__GELU_ROOT * TARN__GELU_CUBE, x * x, tarn__vec_all(2.0f * TARN__GELU_ROOT));
}

TARN__VEC_INLINE tarn__vec tarn__gelu_vec(tarn__vec x, tarn__activation form) {
  tarn__vec e;
  return x * (form == TARN__GELU_TANH ? tarn__vec_sigmoid(tarn__gelu_angle(x)) : tarn__gelu_phi(x, &e));
}

TARN__VEC_INLINE tarn__vec tarn__gelu_slope_vec(tarn__vec x, tarn__activation form) {
  if (form == TARN__GELU_TANH) {
    const tarn__vec s = tarn__vec_sigmoid(tarn__gelu_angle(x));
    const tarn__vec slope =
        tarn__vec_axpy(6.0f * TARN__GELU_ROOT * TARN__GELU_CUBE, x * x, tarn__vec_all(2.0f * TARN__GELU_ROOT));
    return tarn__vec_fma(x * s * (1.0f - s), slope, s);
  }
  tarn__vec e;
  const tarn__vec phi = tarn__gelu_phi(x, &e);
  return tarn__vec_axpy(TARN__GELU_DENSITY, x * e, phi);
}

#endif

// The activations of ops/activation_table.h and their derivatives for fast kernels, each with at most one exponential.
// They are written on tarn__vec, which the file that includes this one defines first: a register of floats
// (device/cpu/rows/activation_vec.h), or the one float of a thread of a card (device/cuda/products/activation_cuda.h),
// with TARN__VEC_INLINE and the functions tarn__vec_all, _abs, _fma, _axpy, _horner, _select, _exp2 and _sigmoid.
#ifndef TARN_OPS_ACTIVATION_FORMS_H
#define TARN_OPS_ACTIVATION_FORMS_H

#include "ops/activation.h"

// sqrt(2 / pi), log2(e) / 2 and 1 / sqrt(2 pi).
#define TARN__GELU_ROOT 0.7978845608028654f
#define TARN__GELU_CUBE 0.044715f
#define TARN__GELU_HALF_LOG2E 0.7213475204444817f
#define TARN__GELU_DENSITY 0.3989422804014327f

// Phi(x), and e = exp(-x^2 / 2). The error function is Abramowitz and Stegun 7.1.26, exact to 1.5e-7.
TARN__VEC_INLINE tarn__vec tarn__gelu_phi(tarn__vec x, tarn__vec *e) {
  const tarn__vec size = tarn__vec_abs(x);
  *e = tarn__vec_exp2(x * x * -TARN__GELU_HALF_LOG2E);
  const tarn__vec t = 1.0f / tarn__vec_axpy(0.3275911f * 0.7071067811865476f, size, tarn__vec_all(1.0f));
  tarn__vec p = tarn__vec_horner(tarn__vec_all(1.061405429f), t, -1.453152027f);
  p = tarn__vec_horner(p, t, 1.421413741f);
  p = tarn__vec_horner(p, t, -0.284496736f);
  p = tarn__vec_horner(p, t, 0.254829592f);
  const tarn__vec tail = p * t * *e * 0.5f;
  return tarn__vec_select(x < 0.0f, tail, 1.0f - tail);
}

TARN__VEC_INLINE tarn__vec tarn__gelu_vec(tarn__vec x) {
  tarn__vec e;
  return x * tarn__gelu_phi(x, &e);
}

// 2 u of the form with tanh: (1 + tanh(u)) / 2 is its sigmoid.
TARN__VEC_INLINE tarn__vec tarn__gelu_angle(tarn__vec x) {
  return x * tarn__vec_axpy(2.0f * TARN__GELU_ROOT * TARN__GELU_CUBE, x * x, tarn__vec_all(2.0f * TARN__GELU_ROOT));
}

TARN__VEC_INLINE tarn__vec tarn__gelu_slope_vec(tarn__vec x, bool by_tanh) {
  if (by_tanh) {
    const tarn__vec s = tarn__vec_sigmoid(tarn__gelu_angle(x));
    const tarn__vec slope =
        tarn__vec_axpy(6.0f * TARN__GELU_ROOT * TARN__GELU_CUBE, x * x, tarn__vec_all(2.0f * TARN__GELU_ROOT));
    return tarn__vec_fma(x * s * (1.0f - s), slope, s);
  }
  tarn__vec e;
  const tarn__vec phi = tarn__gelu_phi(x, &e);
  return tarn__vec_axpy(TARN__GELU_DENSITY, x * e, phi);
}

// e^x in lanes up to 0, 1 in the others.
TARN__VEC_INLINE tarn__vec tarn__activation_exp(tarn__vec x) {
  return tarn__vec_exp2(tarn__vec_select(x > 0.0f, tarn__vec_all(0.0f), x) * 1.44269504088896341f);
}

TARN__VEC_INLINE tarn__vec tarn__swish_slope_vec(tarn__vec x) {
  const tarn__vec s = tarn__vec_sigmoid(x);
  return tarn__vec_fma(x * s, 1.0f - s, s);
}

TARN__VEC_INLINE tarn__vec tarn__sigmoid_slope_vec(tarn__vec x) {
  const tarn__vec s = tarn__vec_sigmoid(x);
  return s * (1.0f - s);
}

TARN__VEC_INLINE tarn__vec tarn__activation_vec(tarn__vec x, tarn__activation form) {
  const tarn__vec zero = tarn__vec_all(0.0f);
  switch (form) {
#define CASE(name, word, value, slope, vector, ...) \
  case name:                                        \
    return vector;
    TARN__EACH_ACTIVATION(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
  return x;
}

TARN__VEC_INLINE tarn__vec tarn__activation_slope_vec(tarn__vec x, tarn__activation form) {
  const tarn__vec zero = tarn__vec_all(0.0f), one = tarn__vec_all(1.0f);
  switch (form) {
#define CASE(name, word, value, slope, vector, vector_slope, ...) \
  case name:                                                      \
    return vector_slope;
    TARN__EACH_ACTIVATION(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
  return one;
}

#endif

// The activations of ops/activation_table.h in kernels of a card: a form is an argument of a kernel, and what is done
// for each element is compiled once for every form (tarn__by_activation).
#ifndef TARN_DEVICE_CUDA_PRODUCTS_ACTIVATION_CUDA_H
#define TARN_DEVICE_CUDA_PRODUCTS_ACTIVATION_CUDA_H

#include "device/cuda/cuda.h"

// What ops/activation_forms.h is written on: a thread's float.
typedef float tarn__vec;
#define TARN__VEC_INLINE static __device__ __forceinline__
TARN__VEC_INLINE tarn__vec tarn__vec_all(float x) { return x; }
TARN__VEC_INLINE tarn__vec tarn__vec_abs(tarn__vec x) { return fabsf(x); }
TARN__VEC_INLINE tarn__vec tarn__vec_fma(tarn__vec a, tarn__vec b, tarn__vec c) { return fmaf(a, b, c); }
TARN__VEC_INLINE tarn__vec tarn__vec_axpy(float a, tarn__vec x, tarn__vec y) { return fmaf(a, x, y); }
TARN__VEC_INLINE tarn__vec tarn__vec_horner(tarn__vec p, tarn__vec x, float next) { return fmaf(p, x, next); }
TARN__VEC_INLINE tarn__vec tarn__vec_select(bool is, tarn__vec a, tarn__vec b) { return is ? a : b; }
TARN__VEC_INLINE tarn__vec tarn__vec_exp2(tarn__vec x) { return exp2f(x); }
TARN__VEC_INLINE tarn__vec tarn__vec_sigmoid(tarn__vec x) { return 1.0f / (1.0f + exp2f(x * -1.44269504088896341f)); }

extern "C" {
#include "ops/activation_forms.h"
#include "ops/ops.h"
}

// A form that is known at compile time.
template <tarn__activation F>
struct tarn__form {
  static __device__ __forceinline__ float value(float x) { return tarn__activation_vec(x, F); }
  static __device__ __forceinline__ float slope(float x) { return tarn__activation_slope_vec(x, F); }
};

// Calls `with`, a lambda of a kernel, with the tarn__form of a form.
template <typename With>
static __device__ __forceinline__ void tarn__by_activation(tarn__activation form, With with) {
  switch (form) {
#define CASE(name, ...)       \
  case name:                  \
    with(tarn__form<name>()); \
    break;
    TARN__EACH_ACTIVATION(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
}

// One element where the form is only known when the kernel runs. Not inline, because it is called in many places.
static __device__ __attribute__((noinline, unused)) float tarn__activation_of(float x, tarn__activation form) {
  return tarn__activation_vec(x, form);
}

#endif

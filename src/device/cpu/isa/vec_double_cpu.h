// Registers of doubles for the fast kernels: half as many lanes as for floats.
#ifndef TARN_DEVICE_CPU_ISA_VEC_DOUBLE_CPU_H
#define TARN_DEVICE_CPU_ISA_VEC_DOUBLE_CPU_H

#include "device/cpu/isa/vec_cpu.h"

enum { TARN__VEC_DOUBLES = TARN__VEC_LANES / 2 };

typedef double tarn__vec_double __attribute__((vector_size(8 * TARN__VEC_DOUBLES)));
typedef double tarn__vec_double_any __attribute__((vector_size(8 * TARN__VEC_DOUBLES), aligned(8), may_alias));

TARN__VEC_INLINE tarn__vec_double tarn__vec_double_load(const double *from) {
  return *(const tarn__vec_double_any *)from;
}
TARN__VEC_INLINE void tarn__vec_double_store(double *to, tarn__vec_double v) { *(tarn__vec_double_any *)to = v; }

TARN__VEC_INLINE tarn__vec_double tarn__vec_double_all(double x) {
#if defined(__AVX512F__)
  return (tarn__vec_double)_mm512_set1_pd(x);
#elif defined(__AVX2__)
  return (tarn__vec_double)_mm256_set1_pd(x);
#elif defined(TARN_NEON)
  return (tarn__vec_double)vdupq_n_f64(x);
#elif defined(TARN_SVE)
  return (tarn__vec_double)svdup_f64(x);
#else
  return (tarn__vec_double){x, x};
#endif
}

// a b + c, as tarn__fma_double().
TARN__VEC_INLINE tarn__vec_double tarn__vec_double_fma(tarn__vec_double a, tarn__vec_double b, tarn__vec_double c) {
#if defined(__AVX512F__)
  return (tarn__vec_double)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__)
  return (tarn__vec_double)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(TARN_NEON)
  return (tarn__vec_double)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(TARN_SVE)
  return (tarn__vec_double)svmla_f64_x(svptrue_b64(), (svfloat64_t)c, (svfloat64_t)a, (svfloat64_t)b);
#elif TARN__HAS_FMA
  for (int i = 0; i < TARN__VEC_DOUBLES; i++) c[i] = tarn__fma_double(a[i], b[i], c[i]);
  return c;
#else
  return a * b + c;
#endif
}

// Converts as many floats, exactly.
TARN__VEC_INLINE tarn__vec_double tarn__vec_double_widen(const float *from) {
#if defined(__AVX512F__)
  return (tarn__vec_double)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
  return (tarn__vec_double)_mm256_cvtps_pd(_mm_loadu_ps(from));
#elif defined(TARN_NEON)
  return (tarn__vec_double)vcvt_f64_f32(vld1_f32(from));
#elif defined(TARN_SVE)
  const svuint64_t bits = svld1uw_u64(svptrue_b64(), (const uint32_t *)(const void *)from);
  return (tarn__vec_double)svcvt_f64_f32_x(svptrue_b64(), svreinterpret_f32_u64(bits));
#else
  return (tarn__vec_double){(double)from[0], (double)from[1]};
#endif
}

// Sum of x y in double. There is one partial sum for each lane of a register of floats; elements after the last whole
// register are added to the first ones; the partial sums are added one by one.
TARN__VEC_INLINE double tarn__vec_double_dot(const float *x, const float *y, int64_t n) {
  enum { HALF = TARN__VEC_DOUBLES };
  tarn__vec_double low = {0}, high = {0};
  int64_t i = 0;
  for (; i + TARN__VEC_LANES <= n; i += TARN__VEC_LANES) {
    low = tarn__vec_double_fma(tarn__vec_double_widen(x + i), tarn__vec_double_widen(y + i), low);
    high = tarn__vec_double_fma(tarn__vec_double_widen(x + i + HALF), tarn__vec_double_widen(y + i + HALF), high);
  }
  double sum = low[0];
  for (; i < n; i++) sum = tarn__fma_double((double)x[i], (double)y[i], sum);
  for (int lane = 1; lane < HALF; lane++) sum += low[lane];
  for (int lane = 0; lane < HALF; lane++) sum += high[lane];
  return sum;
}

#endif

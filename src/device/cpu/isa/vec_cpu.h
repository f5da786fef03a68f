// Registers of floats for the fast kernels: as many lanes as the instruction set has, loaded from and stored to F32 or
// BF16 arrays. The kernels handle lengths that are not a multiple of LANES.
#ifndef TARN_DEVICE_CPU_ISA_VEC_CPU_H
#define TARN_DEVICE_CPU_ISA_VEC_CPU_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(TARN_NEON)
#include <arm_neon.h>
#elif defined(TARN_SVE)  // with registers of a fixed length, so that they are vectors as others (gcc alone)
#include <arm_neon.h>
#include <arm_sve.h>
#endif

#include "device/cpu/isa/fma_cpu.h"
#include "device/dtype.h"

#if defined(__AVX512F__)
#define TARN__VEC_LANES 16
#elif defined(__AVX2__)
#define TARN__VEC_LANES 8
#elif defined(TARN_SVE)
#define TARN__VEC_LANES (__ARM_FEATURE_SVE_BITS / 32)
#else
#define TARN__VEC_LANES 4
#endif

typedef float tarn__vec __attribute__((vector_size(4 * TARN__VEC_LANES)));
typedef float tarn__vec_any __attribute__((vector_size(4 * TARN__VEC_LANES), aligned(4), may_alias));
typedef int32_t tarn__vec_int __attribute__((vector_size(4 * TARN__VEC_LANES)));  // also the result of a comparison
typedef uint32_t tarn__vec_bits __attribute__((vector_size(4 * TARN__VEC_LANES)));
typedef uint16_t tarn__vec_half __attribute__((vector_size(2 * TARN__VEC_LANES)));
typedef uint16_t tarn__vec_half_any __attribute__((vector_size(2 * TARN__VEC_LANES), aligned(2), may_alias));

// Lanes of the concatenation of a and b, by number; mask: a type with as many integers. GCC 11 has only the older form.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#define TARN__VEC_SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#else
#define TARN__VEC_SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif

#define TARN__VEC_INLINE static inline __attribute__((always_inline))

TARN__VEC_INLINE tarn__vec tarn__vec_load(const float *from) { return *(const tarn__vec_any *)from; }
TARN__VEC_INLINE void tarn__vec_store(float *to, tarn__vec v) { *(tarn__vec_any *)to = v; }

// x in all lanes. (0 + x would differ for -0, and take an additional operation.)
TARN__VEC_INLINE tarn__vec tarn__vec_all(float x) {
#if defined(__AVX512F__)
  return (tarn__vec)_mm512_set1_ps(x);
#elif defined(__AVX2__)
  return (tarn__vec)_mm256_set1_ps(x);
#elif defined(TARN_NEON)
  return (tarn__vec)vdupq_n_f32(x);
#elif defined(TARN_SVE)
  return (tarn__vec)svdup_f32(x);
#else
  return (tarn__vec){x, x, x, x};
#endif
}

// a b + c per lane, as tarn__fma().
TARN__VEC_INLINE tarn__vec tarn__vec_fma(tarn__vec a, tarn__vec b, tarn__vec c) {
#if defined(__AVX512F__)
  return (tarn__vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (tarn__vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(TARN_NEON)
  return (tarn__vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(TARN_SVE)
  return (tarn__vec)svmla_f32_x(svptrue_b32(), (svfloat32_t)c, (svfloat32_t)a, (svfloat32_t)b);
#elif TARN__HAS_FMA
  for (int i = 0; i < TARN__VEC_LANES; i++) c[i] = tarn__fma(a[i], b[i], c[i]);
  return c;
#else
  return a * b + c;
#endif
}

// a x + y and p x + next, for scalars a and next.
TARN__VEC_INLINE tarn__vec tarn__vec_axpy(float a, tarn__vec x, tarn__vec y) {
  return tarn__vec_fma(tarn__vec_all(a), x, y);
}
TARN__VEC_INLINE tarn__vec tarn__vec_horner(tarn__vec p, tarn__vec x, float next) {
  return tarn__vec_fma(p, x, tarn__vec_all(next));
}

// The maximum of two registers per lane; b if one of them is NaN. (ARM's own instruction returns NaN.)
TARN__VEC_INLINE tarn__vec tarn__vec_max(tarn__vec a, tarn__vec b) {
#if defined(__AVX512F__)
  return (tarn__vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (tarn__vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(TARN_NEON)
  return (tarn__vec)vbslq_f32(vcgtq_f32((float32x4_t)a, (float32x4_t)b), (float32x4_t)a, (float32x4_t)b);
#elif defined(TARN_SVE)
  const svfloat32_t x = (svfloat32_t)a, y = (svfloat32_t)b;
  return (tarn__vec)svsel_f32(svcmpgt_f32(svptrue_b32(), x, y), x, y);
#else
  for (int i = 0; i < TARN__VEC_LANES; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
  return a;
#endif
}

// The first n lanes of v, and `other` in the rest; n may be negative, or exceed LANES.
TARN__VEC_INLINE tarn__vec tarn__vec_first(tarn__vec v, int64_t n, float other) {
#if TARN__VEC_LANES == 16
  const tarn__vec_int lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif TARN__VEC_LANES == 8
  const tarn__vec_int lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
  const tarn__vec_int lane = {0, 1, 2, 3};
#endif
  const tarn__vec_int keep = lane < (int32_t)n;
  const tarn__vec rest = tarn__vec_all(other);
  return (tarn__vec)(((tarn__vec_int)v & keep) | ((tarn__vec_int)rest & ~keep));
}

// Lane i of the result is lane (i + distance) mod LANES of v, for the steps of a sum or maximum over all lanes.
#if TARN__VEC_LANES == 16
#define TARN__VEC_TURN_8(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define TARN__VEC_TURN_4(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define TARN__VEC_TURN_2(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define TARN__VEC_TURN_1(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#elif TARN__VEC_LANES == 8
#define TARN__VEC_TURN_4(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#define TARN__VEC_TURN_2(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 2, 3, 0, 1, 6, 7, 4, 5)
#define TARN__VEC_TURN_1(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#else
#define TARN__VEC_TURN_2(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 2, 3, 0, 1)
#define TARN__VEC_TURN_1(v) TARN__VEC_SHUFFLE(tarn__vec_int, v, v, 1, 0, 3, 2)
#endif

// The largest lane, in every lane.
TARN__VEC_INLINE tarn__vec tarn__vec_max_lane(tarn__vec v) {
#if TARN__VEC_LANES >= 16
  v = tarn__vec_max(v, TARN__VEC_TURN_8(v));
#endif
#if TARN__VEC_LANES >= 8
  v = tarn__vec_max(v, TARN__VEC_TURN_4(v));
#endif
  v = tarn__vec_max(v, TARN__VEC_TURN_2(v));
  return tarn__vec_max(v, TARN__VEC_TURN_1(v));
}

// The sum of all lanes, in every lane.
TARN__VEC_INLINE tarn__vec tarn__vec_sum_lanes(tarn__vec v) {
#if TARN__VEC_LANES >= 16
  v += TARN__VEC_TURN_8(v);
#endif
#if TARN__VEC_LANES >= 8
  v += TARN__VEC_TURN_4(v);
#endif
  v += TARN__VEC_TURN_2(v);
  return v + TARN__VEC_TURN_1(v);
}

// 16-bit numbers, unconverted. (gcc converts half registers in two pieces.)
TARN__VEC_INLINE tarn__vec_int tarn__vec_load_u16(const uint16_t *from) {
#if defined(__AVX512F__)
  return (tarn__vec_int)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__AVX2__)
  return (tarn__vec_int)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(TARN_NEON)
  return (tarn__vec_int)vmovl_u16(vld1_u16(from));
#elif defined(TARN_SVE)
  return (tarn__vec_int)svld1uh_u32(svptrue_b32(), from);
#else
  return (tarn__vec_int) __builtin_convertvector(*(const tarn__vec_half_any *)from, tarn__vec_bits);
#endif
}

// bf16 to float is exact.
TARN__VEC_INLINE tarn__vec tarn__vec_load_bf16(const uint16_t *from) {
#if defined(TARN_NEON)
  return (tarn__vec)vshll_n_u16(vld1_u16(from), 16);
#else
  return (tarn__vec)((tarn__vec_bits)tarn__vec_load_u16(from) << 16);
#endif
}

#if defined(TARN_SVE)
// The bits of v as bf16, in the lower half of each lane.
TARN__VEC_INLINE svuint32_t tarn__vec_bf16_bits(svfloat32_t v) {
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  return svreinterpret_u32_bf16(svcvt_bf16_f32_x(svptrue_b32(), v));
#else
  const tarn__vec x = (tarn__vec)v;
  const tarn__vec_bits bits = (tarn__vec_bits)x, rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
  const tarn__vec_bits nan = (tarn__vec_bits)(x != x);
  return (svuint32_t)(((nan & (bits | 0x400000u)) | (~nan & rounded)) >> 16);
#endif
}
#endif

// Equal to tarn__bf16_from_f32(), except that the instructions of AVX512_BF16 and NEON_BF16 flush denormal numbers to
// zero, like all arithmetic here (tarn__threads_set).
TARN__VEC_INLINE void tarn__vec_store_bf16(uint16_t *to, tarn__vec v) {
#if defined(__AVX512BF16__)
  _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)v));
#elif defined(TARN_NEON) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  vst1_u16(to, vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)v)));
#elif defined(TARN_SVE)
  svst1h_u32(svptrue_b32(), to, tarn__vec_bf16_bits((svfloat32_t)v));
#else
  const tarn__vec_bits bits = (tarn__vec_bits)v, rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
  const tarn__vec_bits nan = (tarn__vec_bits)(v != v);
  *(tarn__vec_half_any *)to =
      __builtin_convertvector(((nan & (bits | 0x400000u)) | (~nan & rounded)) >> 16, tarn__vec_half);
#endif
}

// Elements [at, at + LANES) of an F32 or BF16 array.
TARN__VEC_INLINE tarn__vec tarn__vec_read(const void *data, tarn__dtype dtype, int64_t at) {
  return dtype == TARN__F32 ? tarn__vec_load((const float *)data + at)
                            : tarn__vec_load_bf16((const uint16_t *)data + at);
}

TARN__VEC_INLINE void tarn__vec_write(void *data, tarn__dtype dtype, int64_t at, tarn__vec v) {
  if (dtype == TARN__F32)
    tarn__vec_store((float *)data + at, v);
  else
    tarn__vec_store_bf16((uint16_t *)data + at, v);
}

// The same for the first n lanes, for the ends of rows; the other lanes are read as zeros and not written. With the
// constant n = LANES these are the functions above.
TARN__VEC_INLINE tarn__vec tarn__vec_read_first(const void *data, tarn__dtype dtype, int64_t at, int64_t n) {
  if (n == TARN__VEC_LANES) return tarn__vec_read(data, dtype, at);
#if defined(__AVX512F__)
  const __mmask16 first = (__mmask16)((1u << n) - 1);
  if (dtype == TARN__F32) return (tarn__vec)_mm512_maskz_loadu_ps(first, (const float *)data + at);
  const __m256i half = _mm256_maskz_loadu_epi16(first, (const uint16_t *)data + at);
  return (tarn__vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
#elif defined(TARN_SVE)
  const svbool_t first = svwhilelt_b32_s64(0, n);
  if (dtype == TARN__F32) return (tarn__vec)svld1_f32(first, (const float *)data + at);
  return (tarn__vec)((tarn__vec_bits)svld1uh_u32(first, (const uint16_t *)data + at) << 16);
#else
  const size_t size = tarn__dtype_size(dtype);
  _Alignas(64) float part[TARN__VEC_LANES] = {0};
  memcpy(part, (const char *)data + (size_t)at * size, (size_t)n * size);
  return tarn__vec_read(part, dtype, 0);
#endif
}

TARN__VEC_INLINE void tarn__vec_write_first(void *data, tarn__dtype dtype, int64_t at, tarn__vec v, int64_t n) {
  if (n == TARN__VEC_LANES) {
    tarn__vec_write(data, dtype, at, v);
    return;
  }
#if defined(__AVX512BF16__)
  const __mmask16 first = (__mmask16)((1u << n) - 1);
  if (dtype == TARN__F32)
    _mm512_mask_storeu_ps((float *)data + at, first, (__m512)v);
  else
    _mm256_mask_storeu_epi16((uint16_t *)data + at, first, (__m256i)_mm512_cvtneps_pbh((__m512)v));
#elif defined(TARN_SVE)
  const svbool_t first = svwhilelt_b32_s64(0, n);
  if (dtype == TARN__F32)
    svst1_f32(first, (float *)data + at, (svfloat32_t)v);
  else
    svst1h_u32(first, (uint16_t *)data + at, tarn__vec_bf16_bits((svfloat32_t)v));
#else
  const size_t size = tarn__dtype_size(dtype);
  _Alignas(64) float part[TARN__VEC_LANES];
  tarn__vec_write(part, dtype, 0, v);
  memcpy((char *)data + (size_t)at * size, part, (size_t)n * size);
#endif
}

// Lanes of a where the mask is set, of b elsewhere.
TARN__VEC_INLINE tarn__vec tarn__vec_select(tarn__vec_int mask, tarn__vec a, tarn__vec b) {
  return (tarn__vec)((mask & (tarn__vec_int)a) | (~mask & (tarn__vec_int)b));
}

TARN__VEC_INLINE tarn__vec tarn__vec_abs(tarn__vec x) { return (tarn__vec)((tarn__vec_int)x & INT32_MAX); }

// 2^x for x <= 127 to 2 units in the last place; 0 below -126; NaN stays NaN. The polynomial is that of Cephes.
TARN__VEC_INLINE tarn__vec tarn__vec_exp2(tarn__vec x) {
#if defined(__AVX512F__)
  const tarn__vec n = (tarn__vec)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const tarn__vec held = tarn__vec_max(tarn__vec_all(-126.0f), x);
  // Adding 1.5 * 2^23 leaves the rounded number in the low bits.
  const tarn__vec shifted = held + 12582912.0f, n = shifted - 12582912.0f;
#endif
  const tarn__vec f = x - n;
  tarn__vec p = tarn__vec_horner(tarn__vec_all(1.535336188319500e-4f), f, 1.339887440266574e-3f);
  p = tarn__vec_horner(p, f, 9.618437357674640e-3f);
  p = tarn__vec_horner(p, f, 5.550332471162809e-2f);
  p = tarn__vec_horner(p, f, 2.402264791363012e-1f);
  p = tarn__vec_horner(p, f, 6.931472028550421e-1f);
  p = tarn__vec_horner(p, f, 1.0f);
#if defined(__AVX512F__)
  return (tarn__vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  const tarn__vec power = (tarn__vec)(((tarn__vec_bits)shifted + 127u) << 23);
  return tarn__vec_select(x < -126.0f, (tarn__vec){0}, p * power);
#endif
}

// 1 / (1 + e^-x), to 4 units in the last place; NaN stays NaN.
TARN__VEC_INLINE tarn__vec tarn__vec_sigmoid(tarn__vec x) {
  const tarn__vec t = x * -1.44269504088896341f;
  return 1.0f / (1.0f + tarn__vec_exp2(tarn__vec_select(t > 126.0f, tarn__vec_all(126.0f), t)));
}

// tanh(x), to 4 units in the last place; NaN stays NaN. Near zero, where 1 - 2 / (e^2x + 1) would lose all digits, the
// polynomial of Cephes is used.
TARN__VEC_INLINE tarn__vec tarn__vec_tanh(tarn__vec x) {
  const tarn__vec_int sign = (tarn__vec_int)x & INT32_MIN;
  const tarn__vec size = (tarn__vec)((tarn__vec_int)x & INT32_MAX), z = x * x;
  tarn__vec p = tarn__vec_horner(tarn__vec_all(-5.70498872745e-3f), z, 2.06390887954e-2f);
  p = tarn__vec_horner(p, z, -5.37397155531e-2f);
  p = tarn__vec_horner(p, z, 1.33314422036e-1f);
  p = tarn__vec_horner(p, z, -3.33332819422e-1f);
  const tarn__vec held = tarn__vec_select(size > 20.0f, tarn__vec_all(20.0f), size);
  const tarn__vec far = 1.0f - 2.0f / (tarn__vec_exp2(held * 2.88539008177792681f) + 1.0f);
  return tarn__vec_select(size < 0.625f, tarn__vec_fma(x * z, p, x), (tarn__vec)((tarn__vec_int)far | sign));
}

// step(i, n) for each n lanes from element i on of [first, last): n is LANES, or less at the end. So a kernel's loop
// body is compiled once with n = LANES and once for the end.
#define TARN__VEC_EACH(first, last, step)                                                    \
  do {                                                                                       \
    int64_t i_ = (first);                                                                    \
    for (; i_ + TARN__VEC_LANES <= (last); i_ += TARN__VEC_LANES) step(i_, TARN__VEC_LANES); \
    if (i_ < (last)) step(i_, (last)-i_);                                                    \
  } while (0)

#endif

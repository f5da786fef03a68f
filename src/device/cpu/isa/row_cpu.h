// Common code of the fast kernels (NAME_cpu.c): they compute in fp32 on one row in L1, and only the loading and storing
// of a row depends on whether tensors are F32 or BF16. gcc and clang vectorise every loop here.
//
//   const float *x = tarn__row_read(in->data, in->dtype, row * cols, cols, x_scratch);   // F32: no copy
//   float *y = tarn__row_target(out->data, out->dtype, row * cols, y_scratch);           // F32: the tensor itself
//   ... y[i] = f(x[i]) ...
//   tarn__row_write(out->data, out->dtype, row * cols, cols, y);                         // F32: nothing to do
#ifndef TARN_DEVICE_CPU_ISA_ROW_CPU_H
#define TARN_DEVICE_CPU_ISA_ROW_CPU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "device/cpu/isa/fma_cpu.h"
#include "device/dtype.h"
#include "device/variant.h"

// Alignment of scratch rows: one cache line, one AVX-512 register.
#define TARN__ROW_ALIGNED _Alignas(64)

// Number of floats of a scratch row of n elements, so that rows of several threads share no cache line.
static inline size_t tarn__row_floats(int64_t n) { return ((size_t)n + 15) / 16 * 16; }

static inline float tarn__row_bits_to_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t tarn__row_float_to_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline void tarn__row_from_bf16(float *out, const uint16_t *in, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = tarn__row_bits_to_float((uint32_t)in[i] << 16);
}

// Equal to tarn__bf16_from_f32(), written so that it compiles to a few vector instructions.
static inline void tarn__row_to_bf16(uint16_t *out, const float *in, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = tarn__row_float_to_bits(in[i]);
    uint32_t rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
    out[i] = (uint16_t)(((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : rounded) >> 16);
  }
}

// Elements [first, first + n) of an F32 or BF16 array as floats: the array itself, or a copy in `scratch`.
static inline const float *tarn__row_read(const void *data, tarn__dtype dtype, int64_t first, int64_t n,
                                          float *scratch) {
  if (dtype == TARN__F32) return (const float *)data + first;
  tarn__row_from_bf16(scratch, (const uint16_t *)data + first, n);
  return scratch;
}

// Like tarn__row_read(), but always a copy: for rows that the kernel modifies.
static inline void tarn__row_copy(float *out, const void *data, tarn__dtype dtype, int64_t first, int64_t n) {
  if (dtype == TARN__F32)
    memcpy(out, (const float *)data + first, (size_t)n * sizeof *out);
  else
    tarn__row_from_bf16(out, (const uint16_t *)data + first, n);
}

// The address at which to compute a row for element `first` of an array: in the array itself, or in `scratch`.
static inline float *tarn__row_target(void *data, tarn__dtype dtype, int64_t first, float *scratch) {
  return dtype == TARN__F32 ? (float *)data + first : scratch;
}

// Stores n floats at element `first`. Does nothing if they are already there (see tarn__row_target).
static inline void tarn__row_write(void *data, tarn__dtype dtype, int64_t first, int64_t n, const float *row) {
  if (dtype == TARN__BF16) {
    tarn__row_to_bf16((uint16_t *)data + first, row, n);
  } else {
    float *out = (float *)data + first;
    if (out != row) memcpy(out, row, (size_t)n * sizeof *out);
  }
}

// exp(x) to 2 units in the last place; 0 below -87, at most 1.6e38 above 88; NaN stays NaN. No branches, no conversion
// to int: adding 1.5 * 2^23 leaves round(x / ln 2) in the low bits of the float.
static inline float tarn__row_exp(float x) {
  float clamped = x > 88.0f ? 88.0f : x;
  clamped = clamped < -87.0f ? -87.0f : clamped;
  float shifted = tarn__fma(clamped, 1.44269504088896341f, 12582912.0f);
  float n = shifted - 12582912.0f;
  float r = tarn__fma(n, -0.693359375f, clamped);
  r = tarn__fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = tarn__fma(p, r, 1.3981999507e-3f);
  p = tarn__fma(p, r, 8.3334519073e-3f);
  p = tarn__fma(p, r, 4.1665795894e-2f);
  p = tarn__fma(p, r, 1.6666665459e-1f);
  p = tarn__fma(p, r, 5.0000001201e-1f);
  float e = tarn__fma(p * r, r, r) + 1.0f;
  float scale = tarn__row_bits_to_float((tarn__row_float_to_bits(shifted) + 127u) << 23);
  return x < -87.0f ? 0.0f : e * scale;
}

// Largest element; NaNs are ignored (the exponentials that follow restore them). n > 0. The lanes are explicit because
// clang does not vectorise a maximum that may encounter NaN.
static inline float tarn__row_max(const float *x, int64_t n) {
  enum { LANES = 16 };
  TARN__ROW_ALIGNED float lane[LANES];
  for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma omp simd
    for (int j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  for (int j = 0; i < n; i++, j++) lane[j] = x[i] > lane[j] ? x[i] : lane[j];
  float most = lane[0];
  for (int j = 1; j < LANES; j++) most = lane[j] > most ? lane[j] : most;
  return most;
}

static inline void tarn__row_scale(float *x, float factor, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static inline void tarn__row_add(float *sum, const float *x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

// sum += factor * x
static inline void tarn__row_axpy(float *sum, float factor, const float *x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] = tarn__fma(factor, x[i], sum[i]);
}

#endif

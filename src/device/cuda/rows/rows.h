// What kernels over rows share. A thread has eight columns of a row at a time: one block of a dropout mask, and 16
// bytes of bf16 or twice 16 bytes of fp32.
#ifndef TARN_DEVICE_CUDA_ROWS_ROWS_H
#define TARN_DEVICE_CUDA_ROWS_ROWS_H

#include "device/cuda/cuda.h"

constexpr int TARN__EIGHT = TARN__DROPOUT_BLOCK, TARN__EACH_THREADS = 256;

static inline __host__ __device__ int64_t tarn__eights_of(int64_t cols) {
  return (cols + TARN__EIGHT - 1) / TARN__EIGHT;
}

// Whether eight columns can be read and written by 16 bytes, in matrices of `rows` rows at all of the pointers (NULL:
// absent). At the end of a single row they may be fewer than eight.
template <typename... P>
static inline bool tarn__whole_eights(int64_t rows, int64_t cols, P... pointers) {
  return (rows <= 1 || cols % TARN__EIGHT == 0) && (... && ((uintptr_t)pointers % 16 == 0));
}

// --- eight elements, of which the first `left` exist; the others are 0

// 16 bytes.
template <typename T>
struct alignas(16) tarn__lot {
  T of[16 / sizeof(T)];
};

template <typename T>
static __device__ __forceinline__ void tarn__read8(float v[TARN__EIGHT], const T *from, int left, bool whole) {
  const int n = 16 / sizeof(T);
  if (whole && left >= TARN__EIGHT) {
    for (int part = 0; part < TARN__EIGHT / n; part++) {
      const tarn__lot<T> lot = reinterpret_cast<const tarn__lot<T> *>(from)[part];
      for (int i = 0; i < n; i++) v[part * n + i] = tarn__get(lot.of[i]);
    }
  } else {
    for (int i = 0; i < TARN__EIGHT; i++) v[i] = i < left ? tarn__get(from[i]) : 0.0f;
  }
}

template <typename T>
static __device__ __forceinline__ void tarn__write8(T *to, const float v[TARN__EIGHT], int left, bool whole) {
  const int n = 16 / sizeof(T);
  if (whole && left >= TARN__EIGHT) {
    for (int part = 0; part < TARN__EIGHT / n; part++) {
      tarn__lot<T> lot;
      for (int i = 0; i < n; i++) tarn__set(lot.of + i, v[part * n + i]);
      reinterpret_cast<tarn__lot<T> *>(to)[part] = lot;
    }
  } else {
    for (int i = 0; i < TARN__EIGHT; i++)
      if (i < left) tarn__set(to + i, v[i]);
  }
}

// The same of a parameter whose type is known when the kernel runs.
static __device__ __forceinline__ void tarn__read8_of(float v[TARN__EIGHT], const void *from, bool bf16, int64_t at,
                                                      int left, bool whole) {
  if (bf16)
    tarn__read8(v, static_cast<const tarn__bf16 *>(from) + at, left, whole);
  else
    tarn__read8(v, static_cast<const float *>(from) + at, left, whole);
}

// Eight columns from `column` on, a multiple of 8, times their factors of dropout.
static __device__ __forceinline__ void tarn__drop8(float v[TARN__EIGHT], const tarn__mask &mask, int64_t row,
                                                   int64_t column) {
  if (mask.threshold == 0) return;
  uint32_t words[4];
  tarn__mask_words(words, mask, (uint32_t)row, (uint32_t)(column / TARN__EIGHT));
  for (int i = 0; i < TARN__EIGHT; i++)
    v[i] = (words[i / 2] >> (16 * (i % 2)) & 0xFFFFu) >= mask.threshold ? v[i] * mask.scale : 0.0f;
}

// --- kernels that do the same for each eight columns

// a / b, of numbers that are mostly small.
static __device__ __forceinline__ int64_t tarn__quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}

template <typename F>
static __global__ void each8_kernel(const F f, int64_t rows, int64_t cols) {
  const int64_t eights = tarn__eights_of(cols), i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * eights) return;
  const int64_t row = tarn__quotient(i, eights), column = (i - row * eights) * TARN__EIGHT;
  const int64_t left = cols - column;
  f(row, column, left < TARN__EIGHT ? (int)left : (int)TARN__EIGHT);
}

// Calls f(row, column, left) on the device for each eight columns of a matrix. F is a structure of what it needs.
template <typename F>
static tarn_status tarn__each8(const F &f, int64_t rows, int64_t cols, cudaStream_t stream) {
  TARN__LAUNCH(each8_kernel<F>, tarn__blocks(rows * tarn__eights_of(cols), TARN__EACH_THREADS), TARN__EACH_THREADS, 0,
               stream, f, rows, cols);
  return TARN_STATUS_OK;
}

// --- sums over parts, the second of two passes

constexpr int TARN__SUM_WARPS = 8;

// Two vectors of n numbers, one after the other in each part; the second may be absent (n numbers a part).
// to[i] (+)= the sum over parts: each warp adds its parts in order, then the warps' sums are added in order.
template <typename R>
static __global__ void sum_parts_kernel(float *to, float *second, const R *parts, int64_t count, int64_t n,
                                        int64_t stride, int add, int add_second) {
  TARN__SHARED(R, sums);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t i = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane;
  R sum = 0;
  for (int64_t p = warp; i < stride && p < count; p += TARN__SUM_WARPS) sum += parts[p * stride + i];
  sums[warp * TARN__WARP_SIZE + lane] = sum;
  __syncthreads();
  if (warp != 0 || i >= stride) return;
  for (int w = 1; w < TARN__SUM_WARPS; w++) sum += sums[w * TARN__WARP_SIZE + lane];
  float *at = i < n ? to : second;
  if (!at) return;
  at += i < n ? i : i - n;
  *at = ((i < n ? add : add_second) ? *at : 0.0f) + (float)sum;
}

template <typename R>
static tarn_status tarn__sum_parts(float *to, int add, float *second, int add_second, const R *parts, int64_t count,
                                   int64_t n, int64_t stride, cudaStream_t stream) {
  const int threads = TARN__SUM_WARPS * TARN__WARP_SIZE;
  TARN__LAUNCH(sum_parts_kernel<R>, tarn__blocks(stride, TARN__WARP_SIZE), threads, threads * sizeof(R), stream, to,
               second, parts, count, n, stride, add, add_second);
  return TARN_STATUS_OK;
}

// The gradient of a parameter, and whether the node adds to it; once per node.
static inline float *tarn__gradient_of(tarn__param *param, int *add) {
  *add = param ? tarn__param_accumulate(param) : 0;
  return param ? (float *)param->training.grad : NULL;
}

#endif

// Several elements of a row at once: loads and stores of 16 bytes.
#ifndef TARN_DEVICE_CUDA_PRODUCTS_VECTOR_CUDA_H
#define TARN_DEVICE_CUDA_PRODUCTS_VECTOR_CUDA_H

#include "device/cuda/cuda.h"

// Elements of 16 bytes.
template <typename T>
constexpr int TARN__WIDE = 16 / (int)sizeof(T);

template <typename T, int N>
struct alignas(sizeof(T) * N) tarn__elements {
  T x[N];
};

template <int N, typename T>
static __device__ __forceinline__ void tarn__read(float to[N], const T *from) {
  const tarn__elements<T, N> all = *reinterpret_cast<const tarn__elements<T, N> *>(from);
#pragma unroll
  for (int i = 0; i < N; i++) to[i] = tarn__get(all.x[i]);
}

template <int N, typename T>
static __device__ __forceinline__ void tarn__write(T *to, const float from[N]) {
  tarn__elements<T, N> all;
#pragma unroll
  for (int i = 0; i < N; i++) tarn__set(all.x + i, from[i]);
  *reinterpret_cast<tarn__elements<T, N> *>(to) = all;
}

// Whether rows of `cols` elements can be read 16 bytes at a time. NULL pointers can.
template <typename T>
static inline bool tarn__wide_rows(int64_t cols, const void *a, const void *b = nullptr, const void *c = nullptr) {
  return cols % TARN__WIDE<T> == 0 && (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) & 15u) == 0;
}

#endif

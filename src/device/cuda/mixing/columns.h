// What kernels of packed sentences share: a row's sentence, and the columns of a row four at a time.
#ifndef TARN_DEVICE_CUDA_MIXING_COLUMNS_H
#define TARN_DEVICE_CUDA_MIXING_COLUMNS_H

#include "device/cuda/column_sums.h"
#include "device/cuda/cuda_kernels.h"

// The offset of the sentence of a row, 0 <= row < the last offset: its first row is offset[s], its end offset[s + 1].
static __device__ __forceinline__ int64_t tarn__sentence_of(const int32_t *offset, int64_t sentences, int64_t row) {
  int64_t low = 0, high = sentences;  // offset[low] <= row < offset[high]
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (offset[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The tokens of the longest sentence, which the host knows.
static inline int64_t tarn__longest_sentence(const tarn__tensor *offsets) {
  int64_t longest = 0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t n = offsets->host[s + 1] - offsets->host[s];
    if (n > longest) longest = n;
  }
  return longest;
}

// --- N columns of a row, 1 or 4, in one access: all rows of the tensor are aligned then

static inline bool tarn__fours(const tarn__tensor *tensor) {
  return !tensor || (tensor->cols % 4 == 0 && (uintptr_t)tensor->data % 16 == 0);
}

template <int N>
static __device__ __forceinline__ void tarn__load(float (&values)[N], const float *from) {
  if (N == 4) {
    const float4 all = *reinterpret_cast<const float4 *>(from);
    values[0] = all.x, values[1 % N] = all.y, values[2 % N] = all.z, values[3 % N] = all.w;
  } else {
    values[0] = *from;
  }
}

template <int N>
static __device__ __forceinline__ void tarn__load(float (&values)[N], const tarn__bf16 *from) {
  if (N == 4) {
    const uint2 all = *reinterpret_cast<const uint2 *>(from);
    values[0] = __uint_as_float(all.x << 16), values[1 % N] = __uint_as_float(all.x & 0xFFFF0000u);
    values[2 % N] = __uint_as_float(all.y << 16), values[3 % N] = __uint_as_float(all.y & 0xFFFF0000u);
  } else {
    values[0] = tarn__get(*from);
  }
}

template <int N>
static __device__ __forceinline__ void tarn__store(float *to, const float (&values)[N]) {
  if (N == 4)
    *reinterpret_cast<float4 *>(to) = make_float4(values[0], values[1 % N], values[2 % N], values[3 % N]);
  else
    *to = values[0];
}

template <int N>
static __device__ __forceinline__ void tarn__store(tarn__bf16 *to, const float (&values)[N]) {
  if (N == 4) {
    tarn__bf16 rounded[4];
    for (int i = 0; i < 4; i++) tarn__set(rounded + i, values[i % N]);
    uint2 all;
    memcpy(&all, rounded, sizeof all);
    *reinterpret_cast<uint2 *>(to) = all;
  } else {
    tarn__set(to, values[0]);
  }
}

// Threads of a block that walks along a row of `cols` columns.
static inline unsigned tarn__row_threads(int64_t cols) {
  const int64_t warps = (cols + TARN__WARP_SIZE - 1) / TARN__WARP_SIZE;
  return (unsigned)((warps < 1 ? 1 : warps > 8 ? 8 : warps) * TARN__WARP_SIZE);
}

#endif

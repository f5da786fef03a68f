// Rows of norms in registers: the lanes of a warp, or the threads of a block, hold a row of a norm, eight columns
// each and up to four times. Every row is then read once.
#ifndef TARN_DEVICE_CUDA_ROWS_NORM_ROWS_H
#define TARN_DEVICE_CUDA_ROWS_NORM_ROWS_H

#include "device/cuda/rows/rows.h"

extern "C" {
#include "ops/residual_norm.h"
}

// Threads of a block; the widest row.
constexpr int TARN__NORM_THREADS = 256, TARN__NORM_WIDEST = 4 * TARN__NORM_THREADS * TARN__EIGHT;

// Calls f<T, WIDE, E>, by the number of columns: WIDE threads hold a row, E times eight columns each.
#define TARN__BY_WIDTH(f, T, cols, ...)                        \
  ((cols) <= 256    ? f<T, TARN__WARP_SIZE, 1>(__VA_ARGS__)    \
   : (cols) <= 512  ? f<T, TARN__WARP_SIZE, 2>(__VA_ARGS__)    \
   : (cols) <= 768  ? f<T, TARN__WARP_SIZE, 3>(__VA_ARGS__)    \
   : (cols) <= 1024 ? f<T, TARN__WARP_SIZE, 4>(__VA_ARGS__)    \
   : (cols) <= 4096 ? f<T, TARN__NORM_THREADS, 2>(__VA_ARGS__) \
                    : f<T, TARN__NORM_THREADS, 4>(__VA_ARGS__))

static inline void *tarn__data_of(const tarn__tensor *tensor) { return tensor ? tensor->data : NULL; }

// The sum over a row, in each of its threads. shared: [32], for a row of a block.
template <int WIDE>
static __device__ __forceinline__ float tarn__row_sum(float x, float *shared) {
  if constexpr (WIDE == TARN__WARP_SIZE) {
    (void)shared;
    return tarn__warp_sum(x);
  } else {
    return tarn__block_sum(x, shared);
  }
}

// The first of the columns that a thread holds at time e.
template <int WIDE>
static __device__ __forceinline__ int tarn__norm_column(int e) {
  return (e * WIDE + (int)threadIdx.x % WIDE) * TARN__EIGHT;
}

// What the gain of every column is multiplied by: with SCALE there is one gain.
static inline float tarn__gain_factor(tarn__norm_form form, int64_t cols) {
  return form == TARN__NORM_SCALE ? (float)(1.0 / sqrt((double)cols)) : 1.0f;
}

static __device__ __forceinline__ void tarn__read_gain(float g[TARN__EIGHT], const float *gain, float factor, bool one,
                                                       int column, int left, bool whole) {
  if (one) {
    for (int i = 0; i < TARN__EIGHT; i++) g[i] = gain[0] * factor;
  } else {
    tarn__read8(g, gain + column, left, whole);
  }
}

#endif

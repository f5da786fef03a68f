// Sums over all elements of a tensor, in double: each block adds its share in a fixed order, then the blocks are added
// (tarn__sum_parts). Their number depends only on the size of the tensor.
#ifndef TARN_DEVICE_CUDA_ROWS_TOTAL_H
#define TARN_DEVICE_CUDA_ROWS_TOTAL_H

#include "device/cuda/rows/rows.h"

constexpr int TARN__TOTAL_BLOCKS = 1024, TARN__TOTAL_MOST = 3;

// parts[block * N + i]: the sum over a block's elements of number i of f(row, column, left, numbers [N]), which adds to
// them in double.
template <int N, typename F>
static __global__ void total_kernel(const F f, double *parts, int64_t rows, int64_t cols) {
  TARN__SHARED(double, shared);
  const int64_t eights = tarn__eights_of(cols), all = rows * eights, step = (int64_t)gridDim.x * blockDim.x;
  double sums[N] = {};
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
    const int64_t row = tarn__quotient(i, eights), column = (i - row * eights) * TARN__EIGHT;
    const int64_t left = cols - column;
    double numbers[N] = {};
    f(row, column, left < TARN__EIGHT ? (int)left : (int)TARN__EIGHT, numbers);
    for (int k = 0; k < N; k++) sums[k] += numbers[k];
  }
  for (int k = 0; k < N; k++) {
    const double sum = tarn__block_sum(sums[k], shared);
    if (threadIdx.x == 0) parts[(int64_t)blockIdx.x * N + k] = sum;
  }
}

static inline int64_t tarn__total_blocks(int64_t rows, int64_t cols) {
  const int64_t blocks = (rows * tarn__eights_of(cols) + TARN__EACH_THREADS - 1) / TARN__EACH_THREADS;
  return blocks < TARN__TOTAL_BLOCKS ? blocks : TARN__TOTAL_BLOCKS;
}

// Bytes of the parts of a tensor.
static inline size_t tarn__total_bytes(int64_t rows, int64_t cols) {
  return (size_t)tarn__total_blocks(rows, cols) * TARN__TOTAL_MOST * sizeof(double);
}

template <int N, typename F>
static tarn_status tarn__total(const F &f, double *parts, int64_t rows, int64_t cols, cudaStream_t stream) {
  TARN__LAUNCH((total_kernel<N, F>), (unsigned)tarn__total_blocks(rows, cols), TARN__EACH_THREADS,
               TARN__WARP_SIZE * sizeof(double), stream, f, parts, rows, cols);
  return TARN_STATUS_OK;
}

#endif

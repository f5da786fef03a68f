// Sums over rows that are added in two passes, so that their order is fixed.
#ifndef TARN_DEVICE_CUDA_COLUMN_SUMS_H
#define TARN_DEVICE_CUDA_COLUMN_SUMS_H

#include "device/cuda/cuda.h"

// Rows whose sums the first pass computes together, and how many such parts there are.
static inline int64_t tarn__part_rows(int64_t rows) {
  const int64_t each = (rows + 511) / 512;
  return each < 64 ? 64 : each;
}
static inline int64_t tarn__part_count(int64_t rows) {
  return (rows + tarn__part_rows(rows) - 1) / tarn__part_rows(rows);
}

// The second pass: sums[c] (+)= parts[0][c] + parts[1][c] + .., of parts [count, cols].
tarn_status tarn__cuda_sum_parts(float *sums, const float *parts, int64_t count, int64_t cols, bool accumulate,
                                 cudaStream_t stream);

// sums [n] (+)= the sums of values [rows, n] over the rows. room: [tarn__part_count(rows), n].
tarn_status tarn__cuda_sum_rows(float *sums, const float *values, int64_t rows, int64_t n, bool accumulate, float *room,
                                cudaStream_t stream);

// The end of a first pass in a block of 8 warps: each lane has N columns, from `column` on, of the rows of its warp.
// `shared` has 8 rows of 32 N floats.
template <int N>
static __device__ __forceinline__ void tarn__part_store(float *part, const float sum[N], int64_t column, int64_t cols,
                                                        float *shared) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
#pragma unroll
  for (int i = 0; i < N; i++) shared[(warp * N + i) * TARN__WARP_SIZE + lane] = sum[i];
  __syncthreads();
  if (warp != 0) return;
#pragma unroll
  for (int i = 0; i < N; i++) {
    float all = 0.0f;
    for (int w = 0; w < 8; w++) all += shared[(w * N + i) * TARN__WARP_SIZE + lane];
    if (column + i < cols) part[column + i] = all;
  }
}

#endif

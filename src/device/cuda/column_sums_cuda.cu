// Sums over rows, for gradients of parameters: of parts of the rows, then of the parts.
#include "device/cuda/column_sums.h"

enum { WARPS = 8, THREADS = WARPS * TARN__WARP_SIZE };

// A block has 32 columns, each of its warps every eighth part.
static __global__ void sum_parts_kernel(float *sums, const float *parts, int64_t count, int64_t cols, bool accumulate) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t column = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane;
  float sum = 0.0f;
  for (int64_t p = warp; p < count && column < cols; p += WARPS) sum += parts[p * cols + column];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (warp != 0 || column >= cols) return;
  sum = accumulate ? sums[column] : 0.0f;
  for (int w = 0; w < WARPS; w++) sum += shared[w * TARN__WARP_SIZE + lane];
  sums[column] = sum;
}

tarn_status tarn__cuda_sum_parts(float *sums, const float *parts, int64_t count, int64_t cols, bool accumulate,
                                 cudaStream_t stream) {
  TARN__LAUNCH(sum_parts_kernel, tarn__blocks(cols, TARN__WARP_SIZE), THREADS, THREADS * sizeof(float), stream, sums,
               parts, count, cols, accumulate);
  return TARN_STATUS_OK;
}

// A block has 32 columns of a part; each warp every eighth row of it.
static __global__ void sum_part_kernel(float *sums, const float *values, int64_t rows, int64_t each, int64_t n) {
  TARN__SHARED(float, of_warps);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t column = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane, first = blockIdx.y * each;
  const int64_t end = first + each < rows ? first + each : rows;
  float sum = 0.0f;
  if (column < n)
    for (int64_t r = first + warp; r < end; r += WARPS) sum += values[r * n + column];
  of_warps[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || column >= n) return;
  for (int w = 1; w < WARPS; w++) sum += of_warps[w * TARN__WARP_SIZE + lane];
  sums[blockIdx.y * n + column] = sum;
}

tarn_status tarn__cuda_sum_rows(float *sums, const float *values, int64_t rows, int64_t n, bool accumulate, float *room,
                                cudaStream_t stream) {
  const int64_t parts = tarn__part_count(rows);
  TARN__LAUNCH(sum_part_kernel, dim3(tarn__blocks(n, TARN__WARP_SIZE), (unsigned)parts), THREADS,
               THREADS * sizeof(float), stream, room, values, rows, tarn__part_rows(rows), n);
  return tarn__cuda_sum_parts(sums, room, parts, n, accumulate, stream);
}

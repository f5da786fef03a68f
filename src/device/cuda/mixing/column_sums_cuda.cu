// Sums over rows, for gradients of parameters.
#include "device/cuda/mixing/columns.h"

static __global__ void add_slices_kernel(float *sums, const float *values, int64_t slices, int64_t n, bool add) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int64_t s = 0; s < slices; s++) sum += values[s * n + i];
  sums[i] = add ? sums[i] + sum : sum;
}

// A block has 32 columns of a slice; each warp every eighth row of it.
static __global__ void sum_slice_kernel(float *sums, const float *values, int64_t rows, int64_t each, int64_t n) {
  enum { WARPS = 8 };
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

tarn_status tarn__cuda_add_slices(float *sums, const float *values, int64_t slices, int64_t n, bool add,
                                  cudaStream_t stream) {
  TARN__LAUNCH(add_slices_kernel, tarn__blocks(n, 128), 128, 0, stream, sums, values, slices, n, add);
  return TARN_STATUS_OK;
}

tarn_status tarn__cuda_sum_rows(float *sums, const float *values, int64_t rows, int64_t n, bool add, float *room,
                                cudaStream_t stream) {
  const int64_t slices = tarn__slices(rows);
  TARN__LAUNCH(sum_slice_kernel, dim3(tarn__blocks(n, TARN__WARP_SIZE), (unsigned)slices), 256, 256 * sizeof(float),
               stream, room, values, rows, tarn__slice_rows(rows), n);
  return tarn__cuda_add_slices(sums, room, slices, n, add, stream);
}

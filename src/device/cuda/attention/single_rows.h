// Attention-like means of incremental decoding: a block of 128 threads has a head of a row, and each of its warps every
// fourth 32 of the rows that it sees. What the warps have found is put together at the end, in their order.
#ifndef TARN_DEVICE_CUDA_ATTENTION_SINGLE_ROWS_H
#define TARN_DEVICE_CUDA_ATTENTION_SINGLE_ROWS_H

#include "device/cuda/attention/pair_tiles.h"

static const int TARN__SINGLE_WARPS = 4;

// Floats of shared memory for heads of some width.
static inline size_t tarn__single_floats(int64_t width) { return (size_t)(TARN__SINGLE_WARPS * (width + 2)); }

// The result from what each warp has: its largest score, its sum, and its sums of values.
template <typename T>
static __device__ __forceinline__ void tarn__single_end(T *y, const float *sums, const float *most, const float *sum,
                                                        int64_t width) {
  float top = most[0], total = 0.0f, share[TARN__SINGLE_WARPS];
  for (int k = 1; k < TARN__SINGLE_WARPS; k++) top = fmaxf(top, most[k]);
#pragma unroll
  for (int k = 0; k < TARN__SINGLE_WARPS; k++) {
    share[k] = most[k] == -INFINITY ? 0.0f : expf(most[k] - top);
    total += share[k] * sum[k];
  }
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    float result = 0.0f;
#pragma unroll
    for (int k = 0; k < TARN__SINGLE_WARPS; k++) result += share[k] * sums[k * width + c];
    tarn__set(y + c, result / total);
  }
}

// y [width] = the mean of value(j, c) over the `count` rows seen, by the softmax of score(j).
template <typename T, typename Score, typename Value>
static __device__ __forceinline__ void tarn__single_row(T *y, int64_t count, int64_t width, const Score &score,
                                                        const Value &value, float *shared) {
  const int lane = tarn__pair_lane(), warp = tarn__pair_warp();
  float *most = shared + TARN__SINGLE_WARPS * width, *sum = most + TARN__SINGLE_WARPS;
  float *sums = shared + warp * width;  // each column is one lane's
  tarn__pair_softmax softmax = tarn__pair_softmax_begin();
  for (int64_t c = lane; c < width; c += TARN__WARP_SIZE) sums[c] = 0.0f;
  for (int64_t j0 = warp * TARN__WARP_SIZE; j0 < count; j0 += TARN__SINGLE_WARPS * TARN__WARP_SIZE) {
    float factor;
    const float e = tarn__pair_softmax_take(&softmax, j0 + lane < count ? score(j0 + lane) : -INFINITY, &factor);
    const int keys = count - j0 < TARN__WARP_SIZE ? (int)(count - j0) : TARN__WARP_SIZE;
    for (int64_t c0 = 0; c0 < width; c0 += TARN__WARP_SIZE) {
      const int64_t c = c0 + lane;
      float added = 0.0f;
      for (int n = 0; n < keys; n++) {
        const float weight = __shfl_sync(TARN__WARP, e, n);
        if (c < width) added += weight * value(j0 + n, c);
      }
      if (c < width) sums[c] = sums[c] * factor + added;
    }
  }
  softmax.sum = tarn__warp_sum(softmax.sum);
  if (lane == 0) most[warp] = softmax.most, sum[warp] = softmax.sum;
  __syncthreads();
  tarn__single_end(y, shared, most, sum, width);
}

#endif

// What the ops of experts share: dot products of rows with the rows of a matrix of experts, and choices.
#ifndef TARN_DEVICE_CUDA_EXPERTS_EXPERT_ROWS_H
#define TARN_DEVICE_CUDA_EXPERTS_EXPERT_ROWS_H

#include "device/cuda/rows/rows.h"

// A better candidate for a choice: the larger number, of equal ones the first.
static __device__ __forceinline__ bool tarn__is_better(float value, int at, float than, int than_at) {
  return value > than || (value == than && at < than_at);
}

// The best candidate of a warp, in every lane; at < 0: none.
static __device__ __forceinline__ void tarn__warp_best(float *value, int *at) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) {
    const float other = __shfl_xor_sync(TARN__WARP, *value, lane);
    const int other_at = __shfl_xor_sync(TARN__WARP, *at, lane);
    if (other_at >= 0 && (*at < 0 || tarn__is_better(other, other_at, *value, *at))) {
      *value = other;
      *at = other_at;
    }
  }
}

// Numbers that are NaN count as the least, so that there always is a choice.
static __device__ __forceinline__ float tarn__number_at(const float *numbers, int at) {
  const float x = numbers[at];
  return x == x ? x : -INFINITY;
}

// The next best of n numbers after number `last`, in falling order, by a warp; last < 0: the first.
static __device__ __forceinline__ int tarn__next_best(const float *numbers, int n, int last) {
  const float last_value = last < 0 ? 0.0f : tarn__number_at(numbers, last);
  float value = 0.0f;
  int best = -1;
  for (int i = (int)threadIdx.x % TARN__WARP_SIZE; i < n; i += TARN__WARP_SIZE) {
    const float x = tarn__number_at(numbers, i);
    if (last >= 0 && !tarn__is_better(last_value, last, x, i)) continue;
    if (best < 0 || tarn__is_better(x, i, value, best)) {
      value = x;
      best = i;
    }
  }
  tarn__warp_best(&value, &best);
  return best;
}

// The `count` largest of n numbers in shared memory, by a warp.
static __device__ __forceinline__ void tarn__choose(int *chosen, const float *numbers, int n, int count) {
  int last = -1;
  for (int j = 0; j < count; j++) {
    last = tarn__next_best(numbers, n, last);
    if (threadIdx.x % TARN__WARP_SIZE == 0) chosen[j] = last;
  }
  __syncwarp();
}

#endif

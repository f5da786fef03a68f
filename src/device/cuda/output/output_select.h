// Choosing the best of many numbers: keys of 64 bits, larger for a larger number, and of equal numbers for the lower
// id. No two keys of a row are equal, so the order does not depend on the order in which threads find them.
#ifndef TARN_DEVICE_CUDA_OUTPUT_OUTPUT_SELECT_H
#define TARN_DEVICE_CUDA_OUTPUT_OUTPUT_SELECT_H

#include "device/cuda/cuda.h"

// 0, below all others, for -infinity and what is no number.
static __device__ __forceinline__ uint64_t tarn__key_of(float x, int32_t id) {
  if (!(x > -INFINITY)) return 0;
  const uint32_t bits = __float_as_uint(x == 0.0f ? 0.0f : x);  // both zeros are equal
  return (uint64_t)(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | (uint32_t) ~(uint32_t)id;
}

static __device__ __forceinline__ float tarn__key_value(uint64_t key) {
  const uint32_t bits = (uint32_t)(key >> 32);
  return __uint_as_float(bits >> 31 ? bits & 0x7FFFFFFFu : ~bits);
}

static __device__ __forceinline__ int32_t tarn__key_id(uint64_t key) { return (int32_t) ~(uint32_t)key; }

// Sums and maxima over a block, the same in every thread. `shared`: [32], free again on return.
static __device__ __forceinline__ int tarn__block_count(int x, int *shared) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(TARN__WARP, x, lane);
  if (threadIdx.x % TARN__WARP_SIZE == 0) shared[threadIdx.x / TARN__WARP_SIZE] = x;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < (int)blockDim.x / TARN__WARP_SIZE; w++) sum += shared[w];
  __syncthreads();
  return sum;
}

static __device__ __forceinline__ uint64_t tarn__block_best(uint64_t x, uint64_t *shared) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) {
    const uint64_t other = __shfl_xor_sync(TARN__WARP, x, lane);
    if (other > x) x = other;
  }
  if (threadIdx.x % TARN__WARP_SIZE == 0) shared[threadIdx.x / TARN__WARP_SIZE] = x;
  __syncthreads();
  uint64_t best = shared[0];
  for (int w = 1; w < (int)blockDim.x / TARN__WARP_SIZE; w++)
    if (shared[w] > best) best = shared[w];
  __syncthreads();
  return best;
}

// A key with which exactly `count` of the n keys key_at(i) are at least as large, but below `below`; there must be so
// many other than 0. Bit by bit: as many passes over the keys as are needed, 64 at most.
template <typename K>
static __device__ __forceinline__ uint64_t tarn__key_threshold(const K &key_at, int64_t n, int count, uint64_t below,
                                                               int *shared) {
  uint64_t least = 0;
  for (int bit = 63; bit >= 0; bit--) {
    const uint64_t tried = least | (uint64_t)1 << bit;
    int found = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const uint64_t key = key_at(i);
      found += key >= tried && key < below;
    }
    found = tarn__block_count(found, shared);
    if (found >= count) least = tried;
    if (found == count) break;
  }
  return least;
}

// Collects the keys from `least` on and below `below`, other than 0, in any order; returns their number, of which
// the first `room` are there. `found` is a number in shared memory.
template <typename K>
static __device__ __forceinline__ int tarn__key_collect(uint64_t *keys, int room, const K &key_at, int64_t n,
                                                        uint64_t least, uint64_t below, int *found) {
  if (threadIdx.x == 0) *found = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const uint64_t key = key_at(i);
    if (key == 0 || key < least || key >= below) continue;
    const int at = atomicAdd(found, 1);
    if (at < room) keys[at] = key;
  }
  __syncthreads();
  const int count = *found;
  __syncthreads();
  return count;
}

// How many of n keys are larger.
static __device__ __forceinline__ int tarn__key_rank(const uint64_t *keys, int n, uint64_t key) {
  int rank = 0;
  for (int i = 0; i < n; i++) rank += keys[i] > key;
  return rank;
}

#endif

// What every file of the CUDA module includes: the runtime, launches, and what kernels share.
//
// The files compile in two ways: with nvcc, for a card; and with a C++ compiler and TARN_CUDA_HOST, where the threads
// of a block are fibres (tests/cuda_host), so that kernels are tested on machines without a card. What both need:
//   - a kernel is a __global__ function whose name ends in _kernel, launched with TARN__LAUNCH()
//   - blocks have a multiple of 32 threads; all lanes of a warp take part in a shuffle (mask TARN__WARP)
//   - shared memory is dynamic: TARN__SHARED(), with its size in the launch
//   - no floating-point atomics: sums are added in a fixed order, so that results repeat bit for bit
#ifndef TARN_DEVICE_CUDA_CUDA_H
#define TARN_DEVICE_CUDA_CUDA_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>

extern "C" {
#include "base/random.h"
#include "device/cuda/cuda_module.h"
#include "graph/graph.h"
#include "ops/dropout.h"
}

typedef __nv_bfloat16 tarn__bf16;

enum { TARN__WARP_SIZE = 32 };
#define TARN__WARP 0xFFFFFFFFu

// The table of calls given to start().
extern const tarn__cuda_calls *tarn__cuda_calls_now;

// Fails with a line about a call of the runtime: `what` in words ("copying to the device").
tarn_status tarn__cuda_fail(cudaError_t error, const char *what);

// Forwards the failure of a call of the runtime.
#define TARN__CUDA(call, what)                                                   \
  do {                                                                           \
    const cudaError_t cuda_error_ = (call);                                      \
    if (cuda_error_ != cudaSuccess) return tarn__cuda_fail(cuda_error_, (what)); \
  } while (0)

// The stream of a call of the device: NULL is the default stream. Makes the device current for this thread.
cudaStream_t tarn__cuda_stream(const tarn__device_stream *stream);

// Memory of the device for one launch or a few on a stream, at least `bytes`, which is reused by the next call with the
// same stream; for kernels that are not nodes of a graph. Nodes have scratch.
tarn_status tarn__cuda_room(void **room, cudaStream_t stream, size_t bytes);

// Multiprocessors of the device.
int tarn__cuda_processors(void);

// Bytes of shared memory that a block may have on this card: 227 KiB on H100, 163 on A100, 99 on the cards of desktops.
// What a description can make larger is refused before it runs (cuda_kernels.h); a launch that finds no room fails.
size_t tarn__cuda_shared(void);
tarn_status tarn__cuda_fits(size_t shared);

// Launches a kernel and forwards its failure: TARN__LAUNCH(kernel, blocks, threads, bytes of shared memory, stream,
// arguments...). A template with several arguments is put in parentheses: TARN__LAUNCH((f_kernel<float, 2>), ...). With
// no blocks nothing is launched.
#if defined(TARN_CUDA_HOST)
#define TARN__LAUNCH(kernel, blocks, threads, shared, stream, ...)                               \
  do {                                                                                           \
    TARN_TRY(tarn__cuda_fits(shared));                                                           \
    TARN__CUDA(tarn__host_launch((const void *)&kernel, (blocks), (threads), (shared), (stream), \
                                 tarn__host_bind(kernel, __VA_ARGS__)),                          \
               "launching a kernel");                                                            \
  } while (0)
#define TARN__SHARED(type, name) type *name = reinterpret_cast<type *>(tarn__host_shared())
#else
#define TARN__LAUNCH(kernel, blocks, threads, shared, stream, ...)                                             \
  do {                                                                                                         \
    const dim3 launch_blocks_(blocks);                                                                         \
    if (launch_blocks_.x && launch_blocks_.y && launch_blocks_.z) {                                            \
      if ((size_t)(shared) > 48 * 1024) {                                                                      \
        TARN_TRY(tarn__cuda_fits(shared));                                                                     \
        TARN__CUDA(cudaFuncSetAttribute((kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(shared)), \
                   "asking for shared memory");                                                                \
      }                                                                                                        \
      (kernel)<<<launch_blocks_, (threads), (shared), (stream)>>>(__VA_ARGS__);                                \
      TARN__CUDA(cudaGetLastError(), "launching a kernel");                                                    \
    }                                                                                                          \
  } while (0)
#define TARN__SHARED(type, name)                                         \
  extern __shared__ __align__(128) unsigned char tarn__shared_memory_[]; \
  type *name = reinterpret_cast<type *>(tarn__shared_memory_)
#endif

// Number of blocks for n elements, `each` per block; rows of a grid may exceed what an int holds.
static inline unsigned tarn__blocks(int64_t n, int64_t each) { return (unsigned)((n + each - 1) / each); }

// --- elements: computed in fp32, stored in T

static __device__ __forceinline__ float tarn__get(float x) { return x; }
static __device__ __forceinline__ float tarn__get(tarn__bf16 x) { return __bfloat162float(x); }
static __device__ __forceinline__ void tarn__set(float *to, float x) { *to = x; }
static __device__ __forceinline__ void tarn__set(tarn__bf16 *to, float x) { *to = __float2bfloat16_rn(x); }
// What a value becomes when it is stored in T.
template <typename T>
static __device__ __forceinline__ float tarn__rounded(float x) {
  T stored;
  tarn__set(&stored, x);
  return tarn__get(stored);
}

// Calls f<float> or f<bf16>, a function of a node, by the type of its activations.
#define TARN__BY_DTYPE(f, dtype, ...) ((dtype) == TARN__BF16 ? f<tarn__bf16>(__VA_ARGS__) : f<float>(__VA_ARGS__))

// --- sums

// The same result in every lane, added in a fixed order.
static __device__ __forceinline__ float tarn__warp_sum(float x) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(TARN__WARP, x, lane);
  return x;
}
static __device__ __forceinline__ double tarn__warp_sum(double x) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(TARN__WARP, x, lane);
  return x;
}
static __device__ __forceinline__ float tarn__warp_max(float x) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(TARN__WARP, x, lane));
  return x;
}

// The same result in every thread of a one-dimensional block. `shared`: [32], free again on return.
template <typename R>
static __device__ __forceinline__ R tarn__block_sum(R x, R *shared) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int warps = (int)blockDim.x / TARN__WARP_SIZE;
  x = tarn__warp_sum(x);
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  R sum = 0;
  for (int w = 0; w < warps; w++) sum += shared[w];
  __syncthreads();
  return sum;
}
static __device__ __forceinline__ float tarn__block_max(float x, float *shared) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int warps = (int)blockDim.x / TARN__WARP_SIZE;
  x = tarn__warp_max(x);
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  float most = shared[0];
  for (int w = 1; w < warps; w++) most = fmaxf(most, shared[w]);
  __syncthreads();
  return most;
}

// --- dropout: the masks of ops/dropout.h, with the same bits

// A place of dropout in a run, by value to kernels.
typedef struct tarn__mask {
  uint32_t threshold, site, step, key[2];
  float scale;
} tarn__mask;

static inline tarn__mask tarn__mask_of(tarn__dropout dropout, const tarn__exec *exec) {
  const tarn__mask mask = {dropout.threshold,
                           dropout.site,
                           exec->step,
                           {(uint32_t)exec->seed, (uint32_t)(exec->seed >> 32)},
                           (float)tarn__dropout_scale(dropout)};
  return mask;
}

// The four words of a block of 8 columns; number i is 16 bits of them, low half first.
static __device__ __forceinline__ void tarn__mask_words(uint32_t words[4], const tarn__mask &mask, uint32_t row,
                                                        uint32_t block) {
  const uint32_t counter[4] = {block, row, mask.site, mask.step};
  tarn__philox(words, counter, mask.key);
}

// The factor of one element: 0 or the scale; 1 without dropout. Kernels that walk along columns should compute the
// words once for 8 columns.
static __device__ __forceinline__ float tarn__mask_at(const tarn__mask &mask, int64_t row, int64_t column) {
  if (mask.threshold == 0) return 1.0f;
  uint32_t words[4];
  tarn__mask_words(words, mask, (uint32_t)row, (uint32_t)(column / TARN__DROPOUT_BLOCK));
  const int i = (int)(column % TARN__DROPOUT_BLOCK);
  return (words[i / 2] >> (16 * (i % 2)) & 0xFFFFu) >= mask.threshold ? mask.scale : 0.0f;
}

#endif

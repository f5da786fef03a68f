// Attention on tensor cores without a matrix of scores (FlashAttention: Dao et al. 2022, Dao 2023): what the forward
// and the backward pass share.
//
// A block has 4 warps and a tile of 64 rows, 16 a warp, which stay in shared memory; tiles of 64 rows of the other side
// pass by. Each warp computes products of its 16 rows with 64 or 32 rows of the other side. In fragments, with g = lane
// / 4 and t = lane % 4, a lane has rows g and g + 8, and columns 2 t and 2 t + 1 of each 8.
#ifndef TARN_DEVICE_CUDA_ATTENTION_MMA_CUDA_H
#define TARN_DEVICE_CUDA_ATTENTION_MMA_CUDA_H

#include "device/cuda/attention/attention_cuda.h"
#include "device/cuda/mma.h"

enum { TARN__ATTENTION_TILE = 64 };

// Elements from one row of a tile to the next.
template <int WIDTH>
static constexpr int tarn__attention_pitch = WIDTH + 8;
template <int WIDTH>
static constexpr int tarn__attention_tile_size = TARN__ATTENTION_TILE *tarn__attention_pitch<WIDTH>;

// Begins to copy a tile, whose rows beyond `rows` are 0.
template <int WIDTH>
static __device__ __forceinline__ void tarn__attention_load(tarn__bf16 *tile, const tarn__bf16 *from, int64_t pitch,
                                                            int rows) {
  constexpr int PARTS = WIDTH / 8;
#pragma unroll
  for (int i = 0; i < TARN__ATTENTION_TILE * PARTS / TARN__ATTENTION_THREADS; i++) {
    const int n = i * TARN__ATTENTION_THREADS + (int)threadIdx.x, row = n / PARTS, column = n % PARTS * 8;
    const bool there = row < rows;
    tarn__copy_async16(tile + row * tarn__attention_pitch<WIDTH> + column, from + (there ? row * pitch + column : 0),
                       there ? 16 : 0);
  }
}

// Calls compute(n, stage) for tiles 0 .. count - 1 in order, with load(n, stage) before it; with two stages the next
// tile is loaded meanwhile. `resident`: an earlier call loaded the same tiles, and those that it has left are not
// loaded again if they are all. On return shared memory is free.
template <int STAGES, typename L, typename C>
static __device__ __forceinline__ void tarn__attention_pass(int count, bool resident, const L &load, const C &compute) {
  const bool loads = !resident || count > STAGES;
  if (loads && count > 0) load(0, 0);
  tarn__copy_commit();
  for (int n = 0; n < count; n++) {
    if (loads) {
      tarn__copy_wait<0>();
      __syncthreads();
    }
    if (STAGES == 2 && loads && n + 1 < count) {
      load(n + 1, (n + 1) % STAGES);
      tarn__copy_commit();
    }
    compute(n, n % STAGES);
    if (STAGES == 1 && loads && n + 1 < count) {
      __syncthreads();
      load(n + 1, 0);
      tarn__copy_commit();
    }
  }
  tarn__copy_wait<0>();
  __syncthreads();
}

// s [16, 16 GROUPS] = a b^T for 16 rows of a and 16 GROUPS rows of b, of which the first `groups` times 16 are wanted.
template <int WIDTH, int GROUPS>
static __device__ __forceinline__ void tarn__attention_scores(float s[2 * GROUPS][4], const tarn__bf16 *a,
                                                              const tarn__bf16 *b, int groups) {
  constexpr int PITCH = tarn__attention_pitch<WIDTH>;
#pragma unroll
  for (int n = 0; n < 2 * GROUPS; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[n][e] = 0.0f;
#pragma unroll
  for (int k = 0; k < WIDTH; k += 16) {
    uint32_t left[4];
    tarn__mma_load_a(left, a + k, PITCH);
#pragma unroll
    for (int n = 0; n < GROUPS; n++)
      if (n < groups) {
        uint32_t right[4];
        tarn__mma_load_bt(right, b + 16 * n * PITCH + k, PITCH);
        tarn__mma(s[2 * n], left, right);
        tarn__mma(s[2 * n + 1], left, right + 2);
      }
  }
}

// out [16, WIDTH] += weights [16, 16] b for 16 rows of b; the weights are those of two tiles of scores.
template <int WIDTH>
static __device__ __forceinline__ void tarn__attention_add(float out[WIDTH / 8][4], const float left[4],
                                                           const float right[4], const tarn__bf16 *b) {
  uint32_t weights[4];
  tarn__mma_next(weights, left, right);
#pragma unroll
  for (int n = 0; n < WIDTH / 16; n++) {
    uint32_t columns[4];
    tarn__mma_load_b(columns, b + 16 * n, tarn__attention_pitch<WIDTH>);
    tarn__mma(out[2 * n], weights, columns);
    tarn__mma(out[2 * n + 1], weights, columns + 2);
  }
}

// What scores become before the exponential: scaled for powers of two, less what the distance costs, and minus infinity
// where a query does not see a key. `row`, `key`: of element 0 of this lane.
typedef struct tarn__attention_rule {
  float scale, slope;
  int keys;
  bool causal;
} tarn__attention_rule;
template <int GROUPS>
static __device__ __forceinline__ void tarn__attention_finish(float s[2 * GROUPS][4], const tarn__attention_rule &rule,
                                                              int row, int key, int groups) {
  const int g = (int)threadIdx.x % TARN__WARP_SIZE / 4, t = (int)threadIdx.x % 4, first = row - g, begin = key - 2 * t;
  const bool whole = begin + 16 * groups <= rule.keys && (!rule.causal || begin + 16 * groups - 1 <= first);
#pragma unroll
  for (int n = 0; n < 2 * GROUPS; n++)
    if (n / 2 < groups)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int j = key + 8 * n + e % 2, i = row + 8 * (e / 2);
        float x = s[n][e] * rule.scale;
        if (rule.slope != 0.0f) x -= rule.slope * (float)abs(i - j);
        if (!whole && (j >= rule.keys || (rule.causal && j > i))) x = -INFINITY;
        s[n][e] = x;
      }
}

// For 16 queries and 16 keys that begin with a block of the mask: byte 2 half + b of the result has the bits of keys 8
// b
// .. 8 b + 7 for query lane % 8 + 8 half.
static __device__ __forceinline__ uint32_t tarn__attention_bits(const tarn__mask &mask, uint32_t row, uint32_t block) {
  const uint32_t lane = threadIdx.x % TARN__WARP_SIZE;
  uint32_t bits = tarn__mask_bits(mask, row + lane % 16, block + lane / 16);
  uint32_t other = __shfl_xor_sync(TARN__WARP, bits, 16);
  bits = lane < 16 ? bits | other << 8 : other | bits << 8;
  other = __shfl_xor_sync(TARN__WARP, bits, 8);
  return lane & 8 ? other | bits << 16 : bits | other << 16;
}

// The sum and the largest over the four lanes of a row.
static __device__ __forceinline__ float tarn__quad_sum(float x) {
  x += __shfl_xor_sync(TARN__WARP, x, 1);
  return x + __shfl_xor_sync(TARN__WARP, x, 2);
}
static __device__ __forceinline__ float tarn__quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(TARN__WARP, x, 1));
  return fmaxf(x, __shfl_xor_sync(TARN__WARP, x, 2));
}

// Stores `rows` of 16 rows of a warp, by way of `room`, 16 rows of a tile that are the warp's own; `add`: to what is
// there.
template <int WIDTH>
static __device__ __forceinline__ void tarn__attention_store(tarn__bf16 *to, int64_t pitch, float out[WIDTH / 8][4],
                                                             tarn__bf16 *room, int rows, bool add) {
  constexpr int PITCH = tarn__attention_pitch<WIDTH>, PARTS = WIDTH / 8;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = g + 8 * half, column = 8 * n + 2 * t;
      float low = out[n][2 * half], high = out[n][2 * half + 1];
      if (add && row < rows) {
        const uint32_t old = *(const uint32_t *)(const void *)(to + row * pitch + column);
        low += tarn__pair_low(old);
        high += tarn__pair_high(old);
      }
      *(uint32_t *)(void *)(room + row * PITCH + column) = tarn__pair(low, high);
    }
  __syncwarp();
  for (int i = lane; i < 16 * PARTS; i += TARN__WARP_SIZE) {
    const int row = i / PARTS, column = i % PARTS * 8;
    if (row < rows)
      *(uint4 *)(void *)(to + row * pitch + column) = *(const uint4 *)(const void *)(room + row * PITCH + column);
  }
}

// Calls a launch for the width and the dropout of a shape.
#define TARN__ATTENTION_WIDTHS(launch, shape, ...)                                        \
  do {                                                                                    \
    const bool drops_ = (shape).mask.threshold != 0;                                      \
    switch ((shape).width) {                                                              \
      case 32:                                                                            \
        return drops_ ? launch<32, true>(__VA_ARGS__) : launch<32, false>(__VA_ARGS__);   \
      case 64:                                                                            \
        return drops_ ? launch<64, true>(__VA_ARGS__) : launch<64, false>(__VA_ARGS__);   \
      case 96:                                                                            \
        return drops_ ? launch<96, true>(__VA_ARGS__) : launch<96, false>(__VA_ARGS__);   \
      default:                                                                            \
        return drops_ ? launch<128, true>(__VA_ARGS__) : launch<128, false>(__VA_ARGS__); \
    }                                                                                     \
  } while (0)

#endif

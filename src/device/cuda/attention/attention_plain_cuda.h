// Attention in fp32 without tensor cores: what its kernels share.
//
// A block has 4 warps with EACH rows of a tile each, which stay in shared memory as floats; 32 rows of the other side
// pass by, in pieces of 64 columns, so that any width fits. For products of rows a lane has one of the 32 rows; for
// sums of rows it has columns.
#ifndef TARN_DEVICE_CUDA_ATTENTION_PLAIN_CUDA_H
#define TARN_DEVICE_CUDA_ATTENTION_PLAIN_CUDA_H

#include "device/cuda/attention/attention_cuda.h"

enum { TARN__PLAIN_PASSING = 32, TARN__PLAIN_COLUMNS = 64, TARN__PLAIN_PITCH = TARN__PLAIN_COLUMNS + 4 };
enum { TARN__PLAIN_PIECE = TARN__PLAIN_PASSING * TARN__PLAIN_PITCH };  // floats

// Columns of a row in shared memory: vectors of four floats, the last ones 0.
static TARN__HOST_DEVICE inline int tarn__plain_width(int width) { return (width + 3) / 4 * 4; }

// Shared memory of a block whose tile has so many rows, of each of which `kept` rows of numbers are kept; backward the
// pass over keys has most, a key, a value and their gradients.
enum { TARN__PLAIN_MOST_KEPT = 4 };
static inline size_t tarn__plain_bytes(int rows, size_t kept, int width) {
  const size_t row = 2 * TARN__PLAIN_PASSING + kept * (size_t)tarn__plain_width(width);
  return (TARN__PLAIN_PIECE + (size_t)rows * row) * sizeof(float);
}

// Rows that a warp has: fewer in wide heads, whose rows would not fit.
enum { TARN__PLAIN_EACH = 4, TARN__PLAIN_NARROW = 512 };
static inline bool tarn__plain_narrow(int width) {
  const int rows = TARN__ATTENTION_WARPS * TARN__PLAIN_EACH;
  return width <= TARN__PLAIN_NARROW && tarn__plain_bytes(rows, TARN__PLAIN_MOST_KEPT, width) <= tarn__cuda_shared();
}
static inline int tarn__plain_rows(int width) {
  return TARN__ATTENTION_WARPS * (tarn__plain_narrow(width) ? TARN__PLAIN_EACH : 1);
}

// Rows of a matrix that pass by, from the first one and the first column of the head.
template <typename T>
struct tarn__plain_matrix {
  const T *from;
  int64_t pitch;
  int rows;  // beyond them rows are 0
};

// Columns `first` onwards of 32 rows; all threads of the block take part.
template <typename T>
static __device__ __forceinline__ void tarn__plain_piece(float *piece, const tarn__plain_matrix<T> &m, int first,
                                                         int width) {
  __syncthreads();
#pragma unroll 4
  for (int i = (int)threadIdx.x; i < TARN__PLAIN_PASSING * TARN__PLAIN_COLUMNS; i += TARN__ATTENTION_THREADS) {
    const int row = i / TARN__PLAIN_COLUMNS, column = i % TARN__PLAIN_COLUMNS;
    const bool there = row < m.rows && first + column < width;
    piece[row * TARN__PLAIN_PITCH + column] = there ? tarn__get(m.from[row * m.pitch + first + column]) : 0.0f;
  }
  __syncthreads();
}

// s[r] = product of row r of this warp and the row of this lane.
template <int EACH, typename T>
static __device__ __forceinline__ void tarn__plain_products(float s[EACH], const float *rows, float *piece,
                                                            const tarn__plain_matrix<T> &m, int width) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, pitch = tarn__plain_width(width);
  for (int r = 0; r < EACH; r++) s[r] = 0.0f;
  for (int first = 0; first < width; first += TARN__PLAIN_COLUMNS) {
    tarn__plain_piece(piece, m, first, width);
    const int columns = min(TARN__PLAIN_COLUMNS, pitch - first);
    for (int c = 0; c < columns; c += 4) {
      const float4 y = *(const float4 *)(const void *)(piece + lane * TARN__PLAIN_PITCH + c);
#pragma unroll
      for (int r = 0; r < EACH; r++) {
        const float4 x = *(const float4 *)(const void *)(rows + r * pitch + first + c);
        s[r] += x.x * y.x;
        s[r] += x.y * y.y;
        s[r] += x.z * y.z;
        s[r] += x.w * y.w;
      }
    }
  }
}

// Row r of `sums` of this warp times factor[r], plus the sum of the 32 rows with `weights` [EACH, 32].
template <int EACH, typename T>
static __device__ __forceinline__ void tarn__plain_sums(float *sums, const float *weights, const float factor[EACH],
                                                        float *piece, const tarn__plain_matrix<T> &m, int width) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, pitch = tarn__plain_width(width);
  const int rows = min(TARN__PLAIN_PASSING, (m.rows + 3) / 4 * 4);
  for (int first = 0; first < width; first += TARN__PLAIN_COLUMNS) {
    tarn__plain_piece(piece, m, first, width);
    for (int c = lane; c < min(TARN__PLAIN_COLUMNS, width - first); c += TARN__WARP_SIZE) {
      float sum[EACH];
#pragma unroll
      for (int r = 0; r < EACH; r++) sum[r] = sums[r * pitch + first + c] * factor[r];
      for (int j = 0; j < rows; j += 4) {
        const float *column = piece + j * TARN__PLAIN_PITCH + c;
        const float y[4] = {column[0], column[TARN__PLAIN_PITCH], column[2 * TARN__PLAIN_PITCH],
                            column[3 * TARN__PLAIN_PITCH]};
#pragma unroll
        for (int r = 0; r < EACH; r++) {
          const float4 x = *(const float4 *)(const void *)(weights + r * TARN__PLAIN_PASSING + j);
          sum[r] += x.x * y[0];
          sum[r] += x.y * y[1];
          sum[r] += x.z * y[2];
          sum[r] += x.w * y[3];
        }
      }
#pragma unroll
      for (int r = 0; r < EACH; r++) sums[r * pitch + first + c] = sum[r];
    }
  }
}

// The rows of a tile as floats, 0 beyond `count`; visible after the next barrier.
template <typename T>
static __device__ __forceinline__ void tarn__plain_load(float *rows, int tile, const T *from, int64_t row_pitch,
                                                        int count, int width) {
  const int pitch = tarn__plain_width(width);
  for (int i = (int)threadIdx.x; i < tile * pitch; i += TARN__ATTENTION_THREADS) {
    const int row = i / pitch, column = i % pitch;
    rows[i] = row < count && column < width ? tarn__get(from[row * row_pitch + column]) : 0.0f;
  }
}

// Stores the first `count` rows of this warp, times scale[r]; `add`: to what is there.
template <int EACH, typename T>
static __device__ __forceinline__ void tarn__plain_store(T *to, int64_t row_pitch, const float *rows,
                                                         const float scale[EACH], int count, int width, bool add) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, pitch = tarn__plain_width(width);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < EACH; r++)
    for (int c = lane; r < count && c < width; c += TARN__WARP_SIZE) {
      T *at = to + r * row_pitch + c;
      const float x = rows[r * pitch + c] * scale[r];
      tarn__set(at, add ? tarn__get(*at) + x : x);
    }
}

// What scores become before the exponential, as in attention_mma_cuda.h, with biases.
typedef struct tarn__plain_rule {
  float scale, slope;
  const float *biases;  // at distance 0, or NULL
  int reach, keys;
  bool causal;
} tarn__plain_rule;
static __device__ __forceinline__ tarn__plain_rule tarn__plain_rule_of(const tarn__attention_shape &shape, int head,
                                                                       int keys) {
  const tarn__plain_rule rule = {
      shape.scale * 1.4426950408889634f,
      tarn__attention_slope(shape, head),
      shape.biases ? shape.biases + head * (int64_t)(2 * shape.reach + 1) + shape.reach : nullptr,
      shape.reach,
      keys,
      shape.causal};
  return rule;
}
static __device__ __forceinline__ float tarn__plain_finish(float s, const tarn__plain_rule &rule, int row, int key) {
  if (key >= rule.keys || (rule.causal && key > row)) return -INFINITY;
  float x = s * rule.scale;
  if (rule.slope != 0.0f) x -= rule.slope * (float)abs(row - key);
  if (rule.biases) x += 1.4426950408889634f * rule.biases[max(-rule.reach, min(rule.reach, key - row))];
  return x;
}

// The factors of dropout for rows of a warp (queries, from `row` on) and the key of this lane, the first of which is a
// multiple of 8.
template <int EACH>
static __device__ __forceinline__ void tarn__plain_factors(float factor[EACH], const tarn__mask &mask, int row,
                                                           int head, int key) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int r = 0; r < EACH; r++) factor[r] = 1.0f;
  if (mask.threshold == 0) return;
  uint32_t bits = 0;
  if (lane < 4 * EACH)
    bits = tarn__mask_bits(mask, (uint32_t)(row + lane / 4), tarn__attention_block(head, key - lane + lane % 4 * 8));
#pragma unroll
  for (int r = 0; r < EACH; r++)
    factor[r] = __shfl_sync(TARN__WARP, bits, 4 * r + lane / 8) >> (lane % 8) & 1u ? mask.scale : 0.0f;
}

// The softmax of a row so far, and the mean of a number by its weights, times the sum.
typedef struct tarn__plain_softmax {
  float most, sum, mean;
} tarn__plain_softmax;
// Adds 32 keys, one a lane, of which row sees the first; returns the factor of sums so far, and the power in *s.
static __device__ __forceinline__ float tarn__plain_advance(tarn__plain_softmax *so_far, float *s, float number) {
  const float most = fmaxf(so_far->most, tarn__warp_max(*s));
  const float factor = exp2f(so_far->most - most);
  *s = exp2f(*s - most);
  so_far->most = most;
  so_far->sum = so_far->sum * factor + tarn__warp_sum(*s);
  so_far->mean = so_far->mean * factor + tarn__warp_sum(*s * number);
  return factor;
}

// A block's place among queries.
typedef struct tarn__plain_place {
  int q0, rows, k0, keys, first, row0, seen;  // first: of the tile; row0: of the warp; seen: keys that the tile sees
} tarn__plain_place;
template <int EACH>
static __device__ __forceinline__ tarn__plain_place tarn__plain_place_of(const tarn__attention_shape &shape) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH;
  const tarn__attention_tile at = tarn__attention_tile_of(shape.query_offsets, shape.sequences, (int)blockIdx.x, TILE);
  tarn__plain_place place;
  place.first = at.first;
  place.q0 = shape.query_offsets[at.sequence];
  place.rows = shape.query_offsets[at.sequence + 1] - place.q0;
  place.k0 = shape.key_offsets[at.sequence];
  place.keys = shape.key_offsets[at.sequence + 1] - place.k0;
  place.row0 = at.first + (int)threadIdx.x / TARN__WARP_SIZE * EACH;
  place.seen = shape.causal ? min(place.keys, at.first + TILE) : place.keys;
  return place;
}

// Calls a launch for the width of a shape.
#define TARN__PLAIN_WIDTHS(launch, T, shape, ...)                                        \
  (tarn__plain_narrow((shape).width) ? launch<T, TARN__PLAIN_EACH>((shape), __VA_ARGS__) \
                                     : launch<T, 1>((shape), __VA_ARGS__))

#endif

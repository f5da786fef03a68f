// States of linear attention in shared memory. A warp has a head of a sentence, and of its matrices S, or of the sums
// of gradients U, 32 columns or 32 features: one for each lane, so that all that adds up along the other side is in one
// lane, in its order. It walks along the rows of the sentence; no two warps need one another.
#ifndef TARN_DEVICE_CUDA_ATTENTION_LINEAR_STATES_H
#define TARN_DEVICE_CUDA_ATTENTION_LINEAR_STATES_H

#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/linear_attention.h"
}

// A node, for kernels: features, or their exponents, of type P, values of T.
template <typename T, typename P>
struct tarn__linear {
  const P *phi;
  const T *values;
  const int32_t *offset;
  const float *start;                                          // states; NULL: zeros
  int64_t phi_step, value_step, heads, width, features, size;  // size: of a head's state
  bool causal, exponents;
};

// A head of a sentence: its first row, and rows from there on.
template <typename T, typename P>
struct tarn__linear_head {
  const P *q, *k;
  const T *v;
  const float *start;
  int64_t first, rows;
};

template <typename T, typename P>
static __device__ __forceinline__ tarn__linear_head<T, P> tarn__linear_head_of(const tarn__linear<T, P> &w, int64_t s,
                                                                               int64_t h) {
  const int64_t first = w.offset[s];
  const P *q = w.phi + first * w.phi_step + h * w.features;
  return {q,
          q + w.heads * w.features,
          w.values + first * w.value_step + h * w.width,
          w.start ? w.start + (s * w.heads + h) * w.size : (const float *)nullptr,
          first,
          w.offset[s + 1] - first};
}

// A level that includes the exponent k, and the factor of sums relative to the level before; `empty`: there are none.
static __device__ __forceinline__ float tarn__linear_rise(float *level, float k, bool empty) {
  const float before = *level;
  if (empty || k > before) *level = k;
  return empty ? 0.0f : expf(before - *level);
}

// --- states by columns: s [features, 32], lane c has column c

typedef struct tarn__linear_sums {
  float *s, *z, *level;         // of keys; all but s [features]
  float *key, *factor, *query;  // of the present row
} tarn__linear_sums;

static __device__ __forceinline__ tarn__linear_sums tarn__linear_sums_at(float *memory, int64_t m) {
  float *z = memory + m * TARN__WARP_SIZE;
  return {memory, z, z + m, z + 2 * m, z + 3 * m, z + 4 * m};
}
static const int TARN__LINEAR_SUMS = TARN__WARP_SIZE + 5;  // times features: numbers of tarn__linear_sums

// s *= factor, then s += a value.
static __device__ __forceinline__ void tarn__linear_add(float *s, const float *factor, const float *a, float value,
                                                        int64_t m) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int64_t f = 0; f < m; f++) {
    float *at = s + f * TARN__WARP_SIZE + lane;
    *at = *at * factor[f] + a[f] * value;
  }
}

static __device__ __forceinline__ float tarn__linear_dot(const float *s, const float *a, int64_t m) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float sum = 0.0f;
  for (int64_t f = 0; f < m; f++) sum += a[f] * s[f * TARN__WARP_SIZE + lane];
  return sum;
}

// The state that a sentence begins with, columns from `column` on.
template <typename T, typename P>
static __device__ __forceinline__ void tarn__linear_begin(const tarn__linear_sums &a, const tarn__linear<T, P> &w,
                                                          const float *start, int64_t column) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t m = w.features;
  for (int64_t f = 0; f < m; f++)
    a.s[f * TARN__WARP_SIZE + lane] = start && column + lane < w.width ? start[f * w.width + column + lane] : 0.0f;
  for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) {
    a.z[f] = start ? start[m * w.width + f] : 0.0f;
    a.level[f] = start && w.exponents ? start[m * (w.width + 1) + f] : 0.0f;
  }
  __syncwarp();
}

// Adds row j, whose value in this lane's column is v. Keys are left in a.key.
template <typename T, typename P>
static __device__ __forceinline__ void tarn__linear_take(const tarn__linear_sums &a, const tarn__linear<T, P> &w,
                                                         const P *keys, float v) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  __syncwarp();
  for (int64_t f = lane; f < w.features; f += TARN__WARP_SIZE) {
    float k = tarn__get(keys[f]), factor = 1.0f;
    if (w.exponents) {
      factor = tarn__linear_rise(&a.level[f], k, a.z[f] == 0.0f);
      k = expf(k - a.level[f]);
    }
    a.key[f] = k;
    a.factor[f] = factor;
    a.z[f] = a.z[f] * factor + k;
  }
  __syncwarp();
  tarn__linear_add(a.s, a.factor, a.key, v, w.features);
}

// Leaves a row's queries, relative to the largest of their exponents, in a.query; returns their product with z.
template <typename T, typename P>
static __device__ __forceinline__ float tarn__linear_ask(const tarn__linear_sums &a, const tarn__linear<T, P> &w,
                                                         const P *queries) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float top = -INFINITY, sum = 0.0f;
  __syncwarp();
  for (int64_t f = lane; f < w.features && w.exponents; f += TARN__WARP_SIZE)
    top = fmaxf(top, tarn__get(queries[f]) + a.level[f]);
  if (w.exponents) top = tarn__warp_max(top);
  for (int64_t f = lane; f < w.features; f += TARN__WARP_SIZE) {
    float q = tarn__get(queries[f]);
    if (w.exponents) q = expf(q + a.level[f] - top);
    a.query[f] = q;
    sum += q * a.z[f];
  }
  sum = tarn__warp_sum(sum);
  __syncwarp();
  return sum;
}

#endif

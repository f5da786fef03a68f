// What the kernels of routing share. A block has four rows, one for each of its warps; the dot products with the
// experts are of all four rows at once, so that a matrix is read a quarter as often.
#ifndef TARN_DEVICE_CUDA_EXPERTS_ROUTE_ROWS_H
#define TARN_DEVICE_CUDA_EXPERTS_ROUTE_ROWS_H

#include "device/cuda/experts/expert_rows.h"

extern "C" {
#include "ops/route.h"
}

constexpr int TARN__ROUTE_ROWS = 4, TARN__ROUTE_THREADS = TARN__ROUTE_ROWS * TARN__WARP_SIZE;
// Choices of a row in shared memory, and with noisy gating the best expert that is not chosen.
constexpr int TARN__ROUTE_CHOSEN = TARN__ROUTE_MOST_CHOICES + 1;

typedef struct tarn__route_args {
  const void *x, *weight, *noise;  // noise NULL: not noisy gating
  bool x_bf16, weight_bf16, whole;
  int64_t rows, period;  // rows of x; of the forward pass
  int d, experts, choices;
  tarn__route_spec spec;
  bool jitters;
  tarn__mask draws;  // random numbers of the router's place
} tarn__route_args;

static inline tarn__route_args tarn__route_args_of(const tarn__exec *exec, const tarn__node *node,
                                                   const tarn__tensor *x) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *noise = node->in[TARN__ROUTE_NOISE];
  const tarn__route_attr *attr = (const tarn__route_attr *)node->attr;
  const tarn__dropout place = {0, attr->site};
  tarn__route_args a = {};
  a.x = x->data;
  a.weight = weight->data;
  a.noise = noise ? noise->data : NULL;
  a.x_bf16 = x->dtype == TARN__BF16;
  a.weight_bf16 = weight->dtype == TARN__BF16;
  a.whole = tarn__whole_eights(2, x->cols, a.x, a.weight, a.noise);
  a.rows = x->rows;
  a.period = node->in[TARN__ROUTE_X]->rows;
  a.d = (int)x->cols;
  a.experts = (int)weight->rows;
  a.choices = (int)attr->spec.choices;
  a.spec = attr->spec;
  a.jitters = attr->noisy != 0;
  a.draws = tarn__mask_of(place, exec);
  return a;
}

// Rows of both matrices.
static inline __host__ __device__ int tarn__route_products(const tarn__route_args &a) {
  return a.noise ? 2 * a.experts : a.experts;
}

// Number i of the 16-bit numbers of a block of 8.
static __device__ __forceinline__ uint32_t tarn__number_of(const uint32_t words[4], int i) {
  return words[i / 2] >> (16 * (i % 2)) & 0xFFFFu;
}

// Eight columns times their factors of noise (tarn__route_jitter).
static __device__ __forceinline__ void tarn__jitter8(float v[TARN__EIGHT], const tarn__route_args &a, int64_t row,
                                                     int column) {
  if (!a.jitters) return;
  const float noise = (float)a.spec.noise, step = noise / 32768.0f, least = 1.0f - noise + 0.5f * step;
  uint32_t words[4];
  tarn__mask_words(words, a.draws, (uint32_t)row, (uint32_t)(column / TARN__EIGHT));
  for (int i = 0; i < TARN__EIGHT; i++) v[i] *= fmaf((float)tarn__number_of(words, i), step, least);
}

static __device__ __forceinline__ float tarn__weight_at(const void *weight, bool bf16, int64_t at) {
  return bf16 ? tarn__get(static_cast<const tarn__bf16 *>(weight)[at]) : static_cast<const float *>(weight)[at];
}

// logits [4, products] of the block's rows, in shared memory; x [4, d]: room for the rows.
static __device__ inline void tarn__route_logits(float *logits, float *x, const tarn__route_args &a) {
  const int64_t first = (int64_t)blockIdx.x * TARN__ROUTE_ROWS;
  const int eights = (int)tarn__eights_of(a.d), products = tarn__route_products(a);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  for (int i = (int)threadIdx.x; i < TARN__ROUTE_ROWS * eights; i += TARN__ROUTE_THREADS) {
    const int r = i / eights, column = i % eights * TARN__EIGHT;
    float v[TARN__EIGHT] = {0};
    if (first + r < a.rows) {
      tarn__read8_of(v, a.x, a.x_bf16, (first + r) * a.d + column, a.d - column, a.whole);
      tarn__jitter8(v, a, (first + r) % a.period, column);
    }
    for (int k = 0; k < TARN__EIGHT && column + k < a.d; k++) x[r * a.d + column + k] = v[k];
  }
  __syncthreads();
  for (int p = warp; p < products; p += TARN__ROUTE_ROWS) {
    const void *matrix = p < a.experts ? a.weight : a.noise;
    const int64_t at = (int64_t)(p < a.experts ? p : p - a.experts) * a.d;
    float sums[TARN__ROUTE_ROWS] = {0};
    for (int c = lane; c < a.d; c += TARN__WARP_SIZE) {
      const float w = tarn__weight_at(matrix, a.weight_bf16, at + c);
      for (int r = 0; r < TARN__ROUTE_ROWS; r++) sums[r] += w * x[r * a.d + c];
    }
    for (int r = 0; r < TARN__ROUTE_ROWS; r++) {
      sums[r] = tarn__warp_sum(sums[r]);
      if (lane == 0) logits[r * products + p] = sums[r];
    }
  }
  __syncthreads();
}

// --- noisy gating: what is kept of a row, c, a and n, and h = c + n s

static __device__ __forceinline__ float tarn__noise_size(float a) { return (float)tarn__route_softplus((double)a); }

static __device__ __forceinline__ float tarn__noisy_logit(const float *kept, int experts, int e) {
  return fmaf(kept[2 * experts + e], tarn__noise_size(kept[experts + e]), kept[e]);
}

// The gates of a row's choices by its numbers h, by a warp: in every lane.
static __device__ __forceinline__ float tarn__noisy_gate(const float *h, const int *chosen, int choices, int j) {
  float sum = 0.0f;
  for (int i = 0; i < choices; i++) sum += expf(h[chosen[i]] - h[chosen[0]]);
  return expf(h[chosen[j]] - h[chosen[0]]) / sum;
}

#endif

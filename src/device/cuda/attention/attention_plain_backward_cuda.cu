// The backward pass in two passes, as in attention_mma_backward_cuda.cu: queries, then keys and values. The first also
// sums gradients of biases, by tile and distance; a third kernel adds the tiles.
#include "device/cuda/attention/attention_plain_cuda.h"

// What the second pass reads of each query row and head: the largest score, 1 / the sum of powers, sum_j p_ij dp_ij.
enum { MOST, INVERSE, MEAN };
static __device__ __forceinline__ float *row_numbers(float *rows, int what, const tarn__attention_shape &shape,
                                                     int head) {
  return rows + ((int64_t)what * shape.heads + head) * shape.query_rows;
}

// Adds the gradients of 32 keys' scores [tile, 32] to the sums of the block by distance. `distance`: of the first key
// and the first query; `diagonals`: room for [tile + 31]. All threads of the block take part.
static __device__ __forceinline__ void add_biases(float *sums, const float *ds, float *diagonals, int tile,
                                                  int distance, int reach) {
  const int i = (int)threadIdx.x, count = tile + TARN__PLAIN_PASSING - 1;
  __syncthreads();
  if (i < count) {
    float sum = 0.0f;
    for (int r = 0; r < tile; r++) {
      const int j = i - (tile - 1) + r;
      if (j >= 0 && j < TARN__PLAIN_PASSING) sum += ds[r * TARN__PLAIN_PASSING + j];
    }
    diagonals[i] = sum;
  }
  __syncthreads();
  const int n = distance + i - (tile - 1);
  if (i < count && n > -reach && n < reach) sums[reach + n] += diagonals[i];
  if (i == TARN__ATTENTION_THREADS - 1)  // distances beyond the reach share a bias
    for (int d = 0; d < count; d++) {
      const int m = distance + d - (tile - 1);
      if (m <= -reach)
        sums[0] += diagonals[d];
      else if (m >= reach)
        sums[2 * reach] += diagonals[d];
    }
}

template <typename T, int EACH>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_plain_queries_kernel(tarn__attention_shape shape, tarn__attention_gradients<T> to) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH, PASSING = TARN__PLAIN_PASSING;
  TARN__SHARED(float, piece);
  const int width = shape.width, pitch = tarn__plain_width(width), lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int own = (int)threadIdx.x / TARN__WARP_SIZE * EACH, head = (int)blockIdx.y, cols = 2 * shape.reach + 1;
  float *const weights = piece + TARN__PLAIN_PIECE, *const diagonals = weights + TILE * PASSING;
  float *const q = diagonals + TILE + PASSING, *const dout = q + TILE * pitch, *const dq = dout + TILE * pitch;
  const tarn__plain_place at = tarn__plain_place_of<EACH>(shape);
  float *const sums = to.dbiases ? to.bias_sums + (blockIdx.x * (int64_t)shape.heads + head) * cols : nullptr;
  for (int i = (int)threadIdx.x; sums && i < cols; i += TARN__ATTENTION_THREADS) sums[i] = 0.0f;
  if (at.first >= at.rows) return;
  const tarn__plain_rule rule = tarn__plain_rule_of(shape, head, at.keys);
  const int64_t column = (int64_t)head * width, kv = at.k0 * shape.key_pitch + (int64_t)(head / shape.group) * width;
  const int64_t row = at.q0 + at.first;
  tarn__plain_load(q, TILE, to.queries + row * shape.query_pitch + shape.query_column + column, shape.query_pitch,
                   at.rows - at.first, width);
  tarn__plain_load(dout, TILE, to.dout + row * shape.d + column, shape.d, at.rows - at.first, width);
  for (int i = (int)threadIdx.x; i < TILE * pitch; i += TARN__ATTENTION_THREADS) dq[i] = 0.0f;
  tarn__plain_softmax so_far[EACH];
  float inverse[EACH], mean[EACH], one[EACH];
  for (int r = 0; r < EACH; r++) {
    so_far[r] = {-INFINITY, 0.0f, 0.0f};
    inverse[r] = mean[r] = 0.0f;
    one[r] = 1.0f;
  }
  for (int pass = 0; pass < 2; pass++) {  // first the sums, then the gradient
    for (int j = 0; j < at.seen; j += PASSING) {
      const tarn__plain_matrix<T> k = {to.keys_values + kv + j * shape.key_pitch + shape.key_column, shape.key_pitch,
                                       at.keys - j};
      const tarn__plain_matrix<T> v = {to.keys_values + kv + j * shape.key_pitch + shape.value_column, shape.key_pitch,
                                       at.keys - j};
      float s[EACH], dp[EACH], kept[EACH];
      tarn__plain_products<EACH, T>(s, q + own * pitch, piece, k, width);
      tarn__plain_products<EACH, T>(dp, dout + own * pitch, piece, v, width);
      tarn__plain_factors<EACH>(kept, shape.mask, at.q0 + at.row0, head, j + lane);
#pragma unroll
      for (int r = 0; r < EACH; r++) {
        s[r] = tarn__plain_finish(s[r], rule, at.row0 + r, j + lane);
        dp[r] *= kept[r];
        if (pass == 0)
          tarn__plain_advance(&so_far[r], &s[r], dp[r]);
        else
          weights[(own + r) * PASSING + lane] = exp2f(s[r] - so_far[r].most) * inverse[r] * (dp[r] - mean[r]);
      }
      if (pass == 0) continue;
      if (sums) add_biases(sums, weights, diagonals, TILE, j - at.first, shape.reach);
      if (to.dqueries) tarn__plain_sums<EACH, T>(dq + own * pitch, weights + own * PASSING, one, piece, k, width);
    }
#pragma unroll
    for (int r = 0; pass == 0 && r < EACH; r++) {
      inverse[r] = so_far[r].sum > 0.0f ? 1.0f / so_far[r].sum : 0.0f;
      mean[r] = so_far[r].mean * inverse[r];
      if (to.dkeys_values && lane == 0 && at.row0 + r < at.rows) {
        row_numbers(to.rows, MOST, shape, head)[row + own + r] = so_far[r].most;
        row_numbers(to.rows, INVERSE, shape, head)[row + own + r] = inverse[r];
        row_numbers(to.rows, MEAN, shape, head)[row + own + r] = mean[r];
      }
    }
    if (!to.dqueries && !sums) return;
  }
  __syncthreads();
  for (int r = 0; r < EACH; r++) one[r] = shape.scale;
  if (to.dqueries)
    tarn__plain_store<EACH>(to.dqueries + (row + own) * to.dquery_pitch + to.dquery_column + column, to.dquery_pitch,
                            dq + own * pitch, one, at.rows - at.row0, width, to.add_queries);
}

template <typename T, int EACH>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_plain_keys_kernel(tarn__attention_shape shape, tarn__attention_gradients<T> to) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH, PASSING = TARN__PLAIN_PASSING;
  TARN__SHARED(float, piece);
  const int width = shape.width, pitch = tarn__plain_width(width), lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int own = (int)threadIdx.x / TARN__WARP_SIZE * EACH;
  float *const weights = piece + TARN__PLAIN_PIECE, *const dscores = weights + TILE * PASSING;
  float *const k = dscores + TILE * PASSING, *const v = k + TILE * pitch, *const dk = v + TILE * pitch,
               *const dv = dk + TILE * pitch;
  const tarn__attention_tile at = tarn__attention_tile_of(shape.key_offsets, shape.sequences, (int)blockIdx.x, TILE);
  const int k0 = shape.key_offsets[at.sequence], keys = shape.key_offsets[at.sequence + 1] - k0;
  if (at.first >= keys) return;
  const int q0 = shape.query_offsets[at.sequence], rows = shape.query_offsets[at.sequence + 1] - q0;
  const int left = keys - at.first, key0 = at.first + own;
  const int64_t place = (int64_t)(k0 + at.first) * shape.key_pitch + (int64_t)blockIdx.y * width;
  tarn__plain_load(k, TILE, to.keys_values + place + shape.key_column, shape.key_pitch, left, width);
  tarn__plain_load(v, TILE, to.keys_values + place + shape.value_column, shape.key_pitch, left, width);
  for (int i = (int)threadIdx.x; i < 2 * TILE * pitch; i += TARN__ATTENTION_THREADS) dk[i] = 0.0f;
  float one[EACH];
  for (int r = 0; r < EACH; r++) one[r] = 1.0f;
  for (int head = (int)blockIdx.y * shape.group; head < ((int)blockIdx.y + 1) * shape.group; head++) {
    const tarn__plain_rule rule = tarn__plain_rule_of(shape, head, keys);
    for (int i = shape.causal ? at.first : 0; i < rows; i += PASSING) {
      const int64_t row = q0 + i, column = (int64_t)head * width;
      const tarn__plain_matrix<T> q = {to.queries + row * shape.query_pitch + shape.query_column + column,
                                       shape.query_pitch, rows - i};
      const tarn__plain_matrix<T> dout = {to.dout + row * shape.d + column, shape.d, rows - i};
      const bool there = i + lane < rows;
      const float most = there ? row_numbers(to.rows, MOST, shape, head)[row + lane] : 0.0f;
      const float inverse = there ? row_numbers(to.rows, INVERSE, shape, head)[row + lane] : 0.0f;
      const float mean = there ? row_numbers(to.rows, MEAN, shape, head)[row + lane] : 0.0f;
      float s[EACH], dp[EACH];
      tarn__plain_products<EACH, T>(s, k + own * pitch, piece, q, width);
      tarn__plain_products<EACH, T>(dp, v + own * pitch, piece, dout, width);
      uint32_t bits = 0;
      if (shape.mask.threshold)
        bits = tarn__mask_bits(shape.mask, (uint32_t)(row + lane), tarn__attention_block(head, key0));
#pragma unroll
      for (int r = 0; r < EACH; r++) {
        const float x = tarn__plain_finish(s[r], rule, i + lane, key0 + r);
        const float p = there ? exp2f(x - most) * inverse : 0.0f;
        float factor = 1.0f;
        if (shape.mask.threshold) factor = bits >> ((key0 + r) % 8) & 1u ? shape.mask.scale : 0.0f;
        weights[(own + r) * PASSING + lane] = p * factor;
        dscores[(own + r) * PASSING + lane] = p * (dp[r] * factor - mean);
      }
      tarn__plain_sums<EACH, T>(dv + own * pitch, weights + own * PASSING, one, piece, dout, width);
      tarn__plain_sums<EACH, T>(dk + own * pitch, dscores + own * PASSING, one, piece, q, width);
    }
  }
  __syncthreads();
  T *out = to.dkeys_values + place + own * shape.key_pitch;
  tarn__plain_store<EACH>(out + shape.value_column, shape.key_pitch, dv + own * pitch, one, left - own, width,
                          to.add_keys_values);
  for (int r = 0; r < EACH; r++) one[r] = shape.scale;
  tarn__plain_store<EACH>(out + shape.key_column, shape.key_pitch, dk + own * pitch, one, left - own, width,
                          to.add_keys_values);
}

// dbiases [heads, cols]: the sums of all slots, in 8 parts, one a warp. A block has 32 columns of a head.
static __global__ void attention_bias_sums_kernel(float *dbiases, const float *sums, int slots, int cols) {
  TARN__SHARED(float, parts);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, part = (int)threadIdx.x / TARN__WARP_SIZE;
  const int count = (int)blockDim.x / TARN__WARP_SIZE, column = (int)blockIdx.x * TARN__WARP_SIZE + lane;
  const int head = (int)blockIdx.y, heads = (int)gridDim.y, each = (slots + count - 1) / count;
  float sum = 0.0f;
  for (int s = part * each; column < cols && s < min(slots, (part + 1) * each); s++)
    sum += sums[((int64_t)s * heads + head) * cols + column];
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (part > 0 || column >= cols) return;
  for (int p = 1; p < count; p++) sum += parts[p * TARN__WARP_SIZE + lane];
  dbiases[head * (int64_t)cols + column] = sum;
}

template <typename T, int EACH>
static tarn_status launch(const tarn__attention_shape &shape, const tarn__attention_gradients<T> &to,
                          cudaStream_t stream) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH;
  const size_t pitch = (size_t)tarn__plain_width(shape.width), passing = TARN__PLAIN_PASSING;
  const size_t query_room = TARN__PLAIN_PIECE + TILE * passing + TILE + passing + 3 * TILE * pitch;
  const unsigned slots = tarn__attention_slots(shape.query_rows, shape.sequences, TILE);
  TARN__LAUNCH((attention_plain_queries_kernel<T, EACH>), dim3(slots, (unsigned)shape.heads), TARN__ATTENTION_THREADS,
               query_room * sizeof(float), stream, shape, to);
  if (to.dbiases) {
    const int cols = 2 * shape.reach + 1, threads = 256;
    TARN__LAUNCH(attention_bias_sums_kernel, dim3(tarn__blocks(cols, TARN__WARP_SIZE), (unsigned)shape.heads), threads,
                 threads * sizeof(float), stream, to.dbiases, to.bias_sums, (int)slots, cols);
  }
  if (!to.dkeys_values) return TARN_STATUS_OK;
  const dim3 blocks(tarn__attention_slots(shape.key_rows, shape.sequences, TILE),
                    (unsigned)(shape.heads / shape.group));
  const size_t key_bytes = tarn__attention_plain_bytes(TARN__ATTENTION_BACK, shape.width);
  TARN__LAUNCH((attention_plain_keys_kernel<T, EACH>), blocks, TARN__ATTENTION_THREADS, key_bytes, stream, shape, to);
  return TARN_STATUS_OK;
}

template <typename T>
tarn_status tarn__attention_plain_backward(const tarn__attention_shape &shape, const tarn__attention_gradients<T> &to,
                                           cudaStream_t stream) {
  return TARN__PLAIN_WIDTHS(launch, T, shape, to, stream);
}
template tarn_status tarn__attention_plain_backward(const tarn__attention_shape &,
                                                    const tarn__attention_gradients<float> &, cudaStream_t);
template tarn_status tarn__attention_plain_backward(const tarn__attention_shape &,
                                                    const tarn__attention_gradients<tarn__bf16> &, cudaStream_t);

// The forward pass and its tangents.
#include "device/cuda/attention/attention_plain_cuda.h"

template <typename T, int EACH>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_plain_kernel(tarn__attention_shape shape, const T *queries, const T *keys_values, T *result) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH, PASSING = TARN__PLAIN_PASSING;
  TARN__SHARED(float, piece);
  const int width = shape.width, pitch = tarn__plain_width(width), lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int own = (int)threadIdx.x / TARN__WARP_SIZE * EACH, head = (int)blockIdx.y;
  float *const weights = piece + TARN__PLAIN_PIECE, *const q = weights + TILE * PASSING, *const out = q + TILE * pitch;
  const tarn__plain_place at = tarn__plain_place_of<EACH>(shape);
  if (at.first >= at.rows) return;
  const tarn__plain_rule rule = tarn__plain_rule_of(shape, head, at.keys);
  const int64_t kv = at.k0 * shape.key_pitch + (int64_t)(head / shape.group) * width;
  tarn__plain_load(q, TILE,
                   queries + (at.q0 + at.first) * shape.query_pitch + shape.query_column + (int64_t)head * width,
                   shape.query_pitch, at.rows - at.first, width);
  for (int i = (int)threadIdx.x; i < TILE * pitch; i += TARN__ATTENTION_THREADS) out[i] = 0.0f;
  tarn__plain_softmax so_far[EACH];
  for (int r = 0; r < EACH; r++) so_far[r] = {-INFINITY, 0.0f, 0.0f};
  for (int j = 0; j < at.seen; j += PASSING) {
    const T *k = keys_values + kv + j * shape.key_pitch + shape.key_column;
    const T *v = keys_values + kv + j * shape.key_pitch + shape.value_column;
    float s[EACH], factor[EACH], kept[EACH];
    tarn__plain_products<EACH, T>(s, q + own * pitch, piece, {k, shape.key_pitch, at.keys - j}, width);
    tarn__plain_factors<EACH>(kept, shape.mask, at.q0 + at.row0, head, j + lane);
#pragma unroll
    for (int r = 0; r < EACH; r++) {
      s[r] = tarn__plain_finish(s[r], rule, at.row0 + r, j + lane);
      factor[r] = tarn__plain_advance(&so_far[r], &s[r], 0.0f);
      weights[(own + r) * PASSING + lane] = s[r] * kept[r];
    }
    tarn__plain_sums<EACH, T>(out + own * pitch, weights + own * PASSING, factor, piece,
                              {v, shape.key_pitch, at.keys - j}, width);
  }
  __syncthreads();
  float scale[EACH];
  for (int r = 0; r < EACH; r++) scale[r] = so_far[r].sum > 0.0f ? 1.0f / so_far[r].sum : 0.0f;
  tarn__plain_store<EACH>(result + (at.q0 + at.row0) * shape.d + (int64_t)head * width, shape.d, out + own * pitch,
                          scale, at.rows - at.row0, width, false);
}

// Of each row are kept its query and what it makes, and with tangents that of the query too.
size_t tarn__attention_plain_bytes(tarn__attention_way pass, int width) {
  const size_t kept = pass == TARN__ATTENTION_FORWARD ? 2 : pass == TARN__ATTENTION_MOVED ? 3 : TARN__PLAIN_MOST_KEPT;
  return tarn__plain_bytes(tarn__plain_rows(width), kept, width);
}

template <typename T, int EACH>
static tarn_status launch(const tarn__attention_shape &shape, const T *queries, const T *keys_values, T *result,
                          cudaStream_t stream) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH;
  const dim3 blocks(tarn__attention_slots(shape.query_rows, shape.sequences, TILE), (unsigned)shape.heads);
  TARN__LAUNCH((attention_plain_kernel<T, EACH>), blocks, TARN__ATTENTION_THREADS,
               tarn__attention_plain_bytes(TARN__ATTENTION_FORWARD, shape.width), stream, shape, queries, keys_values,
               result);
  return TARN_STATUS_OK;
}

template <typename T>
tarn_status tarn__attention_plain(const tarn__attention_shape &shape, const T *queries, const T *keys_values, T *result,
                                  cudaStream_t stream) {
  return TARN__PLAIN_WIDTHS(launch, T, shape, queries, keys_values, result, stream);
}
template tarn_status tarn__attention_plain(const tarn__attention_shape &, const float *, const float *, float *,
                                           cudaStream_t);
template tarn_status tarn__attention_plain(const tarn__attention_shape &, const tarn__bf16 *, const tarn__bf16 *,
                                           tarn__bf16 *, cudaStream_t);

// --- tangents: a block for a tile, a head and a direction

// The inputs; a direction that is NULL is 0.
template <typename T>
struct directions {
  const T *queries, *keys_values, *dqueries, *dkeys_values;
};

// The scores of 32 keys and what the direction adds to them: ds_ij = scale (dq_i k_j + q_i dk_j).
template <int EACH, typename T>
static __device__ __forceinline__ void scores_of(float s[EACH], float ds[EACH], const directions<T> &in,
                                                 const tarn__attention_shape &shape, const float *q, const float *dq,
                                                 float *piece, int64_t k, int64_t dk, int rows) {
  float more[EACH];
  tarn__plain_products<EACH, T>(s, q, piece, {in.keys_values + k, shape.key_pitch, rows}, shape.width);
  for (int r = 0; r < EACH; r++) ds[r] = more[r] = 0.0f;
  if (in.dqueries)
    tarn__plain_products<EACH, T>(ds, dq, piece, {in.keys_values + k, shape.key_pitch, rows}, shape.width);
  if (in.dkeys_values)
    tarn__plain_products<EACH, T>(more, q, piece, {in.dkeys_values + dk, shape.key_pitch, rows}, shape.width);
  for (int r = 0; r < EACH; r++) ds[r] = shape.scale * (ds[r] + more[r]);
}

template <typename T, int EACH>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_tangent_kernel(tarn__attention_shape shape, directions<T> in, T *dresult) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH, PASSING = TARN__PLAIN_PASSING;
  TARN__SHARED(float, piece);
  const int width = shape.width, pitch = tarn__plain_width(width), lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int own = (int)threadIdx.x / TARN__WARP_SIZE * EACH, head = (int)blockIdx.y;
  const int64_t direction = blockIdx.z;
  float *const weights = piece + TARN__PLAIN_PIECE, *const dweights = weights + TILE * PASSING;
  float *const q = dweights + TILE * PASSING, *const dq = q + TILE * pitch, *const out = dq + TILE * pitch;
  const tarn__plain_place at = tarn__plain_place_of<EACH>(shape);
  if (at.first >= at.rows) return;
  const tarn__plain_rule rule = tarn__plain_rule_of(shape, head, at.keys);
  const int64_t column = (int64_t)head * width, kv_column = (int64_t)(head / shape.group) * width;
  const int64_t row = at.q0 + at.first, drow = direction * shape.query_rows + row;
  const int left = at.rows - at.first;
  tarn__plain_load(q, TILE, in.queries + row * shape.query_pitch + shape.query_column + column, shape.query_pitch, left,
                   width);
  if (in.dqueries)
    tarn__plain_load(dq, TILE, in.dqueries + drow * shape.query_pitch + shape.query_column + column, shape.query_pitch,
                     left, width);
  for (int i = (int)threadIdx.x; i < TILE * pitch; i += TARN__ATTENTION_THREADS) out[i] = 0.0f;
  tarn__plain_softmax so_far[EACH];
  for (int r = 0; r < EACH; r++) so_far[r] = {-INFINITY, 0.0f, 0.0f};
  float one[EACH];
  for (int r = 0; r < EACH; r++) one[r] = 1.0f;
  for (int pass = 0; pass < 2; pass++)  // first the sums of powers and the means of ds, then the result
    for (int j = 0; j < at.seen; j += PASSING) {
      const int64_t k = (at.k0 + j) * shape.key_pitch + kv_column;
      const int64_t dk = direction * shape.key_rows * shape.key_pitch + k;
      float s[EACH], ds[EACH], kept[EACH];
      scores_of<EACH>(s, ds, in, shape, q + own * pitch, dq + own * pitch, piece, k + shape.key_column,
                      dk + shape.key_column, at.keys - j);
      for (int r = 0; r < EACH; r++) s[r] = tarn__plain_finish(s[r], rule, at.row0 + r, j + lane);
      if (pass == 0) {
        for (int r = 0; r < EACH; r++) tarn__plain_advance(&so_far[r], &s[r], ds[r]);
        continue;
      }
      tarn__plain_factors<EACH>(kept, shape.mask, at.q0 + at.row0, head, j + lane);
      for (int r = 0; r < EACH; r++) {
        const float p = exp2f(s[r] - so_far[r].most) / so_far[r].sum * kept[r];
        weights[(own + r) * PASSING + lane] = p;
        dweights[(own + r) * PASSING + lane] = p * (ds[r] - so_far[r].mean / so_far[r].sum);
      }
      tarn__plain_sums<EACH, T>(out + own * pitch, dweights + own * PASSING, one, piece,
                                {in.keys_values + k + shape.value_column, shape.key_pitch, at.keys - j}, width);
      if (in.dkeys_values)
        tarn__plain_sums<EACH, T>(out + own * pitch, weights + own * PASSING, one, piece,
                                  {in.dkeys_values + dk + shape.value_column, shape.key_pitch, at.keys - j}, width);
    }
  __syncthreads();
  tarn__plain_store<EACH>(dresult + (drow + own) * shape.d + column, shape.d, out + own * pitch, one, left - own, width,
                          false);
}

template <typename T, int EACH>
static tarn_status launch_tangent(const tarn__attention_shape &shape, const directions<T> &in, T *dresult, int count,
                                  cudaStream_t stream) {
  constexpr int TILE = TARN__ATTENTION_WARPS * EACH;
  const dim3 blocks(tarn__attention_slots(shape.query_rows, shape.sequences, TILE), (unsigned)shape.heads,
                    (unsigned)count);
  TARN__LAUNCH((attention_tangent_kernel<T, EACH>), blocks, TARN__ATTENTION_THREADS,
               tarn__attention_plain_bytes(TARN__ATTENTION_MOVED, shape.width), stream, shape, in, dresult);
  return TARN_STATUS_OK;
}

template <typename T>
tarn_status tarn__attention_plain_tangent(const tarn__attention_shape &shape, const T *queries, const T *keys_values,
                                          const T *dqueries, const T *dkeys_values, T *dresult, int count,
                                          cudaStream_t stream) {
  const directions<T> in = {queries, keys_values, dqueries, dkeys_values};
  return TARN__PLAIN_WIDTHS(launch_tangent, T, shape, in, dresult, count, stream);
}
// Graphs with tangents are fp32.
template tarn_status tarn__attention_plain_tangent(const tarn__attention_shape &, const float *, const float *,
                                                   const float *, const float *, float *, int, cudaStream_t);

// The backward pass in two passes, so that each gradient is the sum of one block in a fixed order:
//   queries          a tile of queries; keys pass by. Without statistics of the forward pass they pass by twice, first
//                    for the largest score, the sum of powers and sum_j p_ij dp_ij of each row, which the second pass
//                    needs
//   keys and values  a tile of keys; queries of all heads that share them pass by
#include "device/cuda/attention/attention_mma_cuda.h"

// Stages of the tiles that pass by: a wide head would leave room for one block of a processor only.
template <int WIDTH>
static constexpr int stages_of = WIDTH <= 64 ? 2 : 1;

// What both passes know of each query row and head: the scores' logarithm of the sum of powers (all for powers of two),
// and sum_j p_ij dp_ij.
enum { LEVELS, MEANS };
static __device__ __forceinline__ float *row_numbers(float *rows, int what, const tarn__attention_shape &shape,
                                                     int head) {
  return rows + ((int64_t)what * shape.heads + head) * shape.query_rows;
}

// The factors of dp by dropout for a group of 16 keys, in the lanes of scores.
static __device__ __forceinline__ void drop(float left[4], float right[4], const tarn__mask &mask, int row,
                                            uint32_t block) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, t = lane % 4;
  const uint32_t bits = __shfl_sync(TARN__WARP, tarn__attention_bits(mask, (uint32_t)row, block), lane / 4);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const int bit = 16 * (e / 2) + 2 * t + e % 2;
    left[e] = bits >> bit & 1u ? left[e] * mask.scale : 0.0f;
    right[e] = bits >> (bit + 8) & 1u ? right[e] * mask.scale : 0.0f;
  }
}

// The sums of the first pass over 16 rows, in part (this lane's columns).
typedef struct softmax {
  float most[2], sum[2], mean[2];  // mean: of dp, times the sum
} softmax;

static __device__ __forceinline__ void advance(softmax *so_far, const float s[4][4], const float dp[4][4], int groups) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float most = so_far->most[half];
#pragma unroll
    for (int n = 0; n < 4; n++)
      if (n / 2 < groups) most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    most = tarn__quad_max(most);
    const float factor = tarn__exp2(so_far->most[half] - most);
    so_far->most[half] = most;
    so_far->sum[half] *= factor;
    so_far->mean[half] *= factor;
#pragma unroll
    for (int n = 0; n < 4; n++)
      if (n / 2 < groups)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) {
          const float p = tarn__exp2(s[n][e] - most);
          so_far->sum[half] += p;
          so_far->mean[half] += p * dp[n][e];
        }
  }
}

// The sum over columns of two rows, by the four lanes of each.
template <int WIDTH>
static __device__ __forceinline__ float row_product(const tarn__bf16 *x, const tarn__bf16 *y) {
  float sum = 0.0f;
#pragma unroll
  for (int c = (int)threadIdx.x % 4 * 8; c < WIDTH; c += 32) {
    const uint4 a = *(const uint4 *)(const void *)(x + c), b = *(const uint4 *)(const void *)(y + c);
    sum += tarn__pair_low(a.x) * tarn__pair_low(b.x) + tarn__pair_high(a.x) * tarn__pair_high(b.x);
    sum += tarn__pair_low(a.y) * tarn__pair_low(b.y) + tarn__pair_high(a.y) * tarn__pair_high(b.y);
    sum += tarn__pair_low(a.z) * tarn__pair_low(b.z) + tarn__pair_high(a.z) * tarn__pair_high(b.z);
    sum += tarn__pair_low(a.w) * tarn__pair_low(b.w) + tarn__pair_high(a.w) * tarn__pair_high(b.w);
  }
  return tarn__quad_sum(sum);
}

// Where a block of the pass over queries is, and what it reads.
typedef struct query_place {
  int q0, rows, k0, keys, first, row0, seen, count, head;  // first: of the tile; row0: of the warp; seen: keys, by it
} query_place;
static __device__ __forceinline__ query_place query_place_of(const tarn__attention_shape &shape) {
  const int slot = (int)(shape.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  const tarn__attention_tile at =
      tarn__attention_tile_of(shape.query_offsets, shape.sequences, slot, TARN__ATTENTION_TILE);
  query_place place;
  place.head = (int)blockIdx.y;
  place.first = at.first;
  place.q0 = shape.query_offsets[at.sequence];
  place.rows = shape.query_offsets[at.sequence + 1] - place.q0;
  place.k0 = shape.key_offsets[at.sequence];
  place.keys = shape.key_offsets[at.sequence + 1] - place.k0;
  place.row0 = at.first + 16 * ((int)threadIdx.x / TARN__WARP_SIZE);
  place.seen = place.row0 >= place.rows ? 0 : shape.causal ? min(place.keys, place.row0 + 16) : place.keys;
  const int last = shape.causal ? min(place.keys, at.first + TARN__ATTENTION_TILE) : place.keys;
  place.count = (last + TARN__ATTENTION_TILE - 1) / TARN__ATTENTION_TILE;
  return place;
}

// Calls use(s, dp, j, groups, stage's keys) for the scores and the gradients of weights of this warp with each 32 keys
// of a tile.
template <int WIDTH, bool DROPS, typename U>
static __device__ __forceinline__ void each_unit(const tarn__attention_shape &shape, const query_place &place,
                                                 const tarn__attention_rule &rule, const tarn__bf16 *query_tile,
                                                 const tarn__bf16 *dout_tile, const tarn__bf16 *key_tile,
                                                 const tarn__bf16 *value_tile, int tile, const U &use) {
  constexpr int PITCH = tarn__attention_pitch<WIDTH>;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, own = 16 * ((int)threadIdx.x / TARN__WARP_SIZE) * PITCH;
#pragma unroll 1
  for (int unit = 0; unit < 2; unit++) {
    const int j = tile * TARN__ATTENTION_TILE + 32 * unit, groups = min((place.seen - j + 15) / 16, 2);
    if (j >= place.seen) return;
    float s[4][4], dp[4][4];
    tarn__attention_scores<WIDTH, 2>(s, query_tile + own, key_tile + 32 * unit * PITCH, groups);
    tarn__attention_scores<WIDTH, 2>(dp, dout_tile + own, value_tile + 32 * unit * PITCH, groups);
    tarn__attention_finish<2>(s, rule, place.row0 + lane / 4, j + 2 * (lane % 4), groups);
#pragma unroll
    for (int group = 0; group < 2; group++)
      if (DROPS && group < groups)
        drop(dp[2 * group], dp[2 * group + 1], shape.mask, place.q0 + place.row0,
             tarn__attention_block(place.head, j + 16 * group));
    use(s, dp, groups, key_tile + 32 * unit * PITCH);
  }
}

// For the pass over keys and values: the levels and means of this thread's rows.
static __device__ __forceinline__ void keep_rows(const tarn__attention_shape &shape,
                                                 const tarn__attention_gradients<tarn__bf16> &to, const query_place &at,
                                                 const float level[2], const float mean[2]) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int row = at.row0 + lane / 4 + 8 * half;
    if (lane % 4 != 0 || row >= at.rows) continue;
    row_numbers(to.rows, LEVELS, shape, at.head)[at.q0 + row] = level[half];
    row_numbers(to.rows, MEANS, shape, at.head)[at.q0 + row] = mean[half];
  }
}

template <int WIDTH, bool DROPS>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_mma_queries_kernel(tarn__attention_shape shape, tarn__attention_gradients<tarn__bf16> to) {
  constexpr int TILE = TARN__ATTENTION_TILE, PITCH = tarn__attention_pitch<WIDTH>, STAGES = stages_of<WIDTH>;
  constexpr int SIZE = tarn__attention_tile_size<WIDTH>;
  TARN__SHARED(tarn__bf16, query_tile);
  tarn__bf16 *const dout_tile = query_tile + SIZE, *const key_tiles = dout_tile + SIZE,
                    *const value_tiles = key_tiles + STAGES * SIZE;
  const int g = (int)threadIdx.x % TARN__WARP_SIZE / 4;
  const query_place at = query_place_of(shape);
  if (at.first >= at.rows) return;
  const int64_t kv_column = (int64_t)(at.head / shape.group) * WIDTH, column = (int64_t)at.head * WIDTH;
  const tarn__bf16 *k = to.keys_values + at.k0 * shape.key_pitch + shape.key_column + kv_column;
  const tarn__bf16 *v = to.keys_values + at.k0 * shape.key_pitch + shape.value_column + kv_column;
  tarn__attention_load<WIDTH>(query_tile,
                              to.queries + (at.q0 + at.first) * shape.query_pitch + shape.query_column + column,
                              shape.query_pitch, at.rows - at.first);
  tarn__attention_load<WIDTH>(dout_tile, to.dout + (at.q0 + at.first) * shape.d + column, shape.d, at.rows - at.first);
  const tarn__attention_rule rule = {shape.scale * 1.4426950408889634f, tarn__attention_slope(shape, at.head), at.keys,
                                     shape.causal};
  const auto load = [&](int n, int stage) {
    const int64_t from = (int64_t)n * TILE * shape.key_pitch;
    tarn__attention_load<WIDTH>(key_tiles + stage * SIZE, k + from, shape.key_pitch, at.keys - n * TILE);
    tarn__attention_load<WIDTH>(value_tiles + stage * SIZE, v + from, shape.key_pitch, at.keys - n * TILE);
  };
  float level[2] = {0.0f, 0.0f}, mean[2] = {0.0f, 0.0f};
  // The result is rounded to bf16, which would make the mean too rough where a query sees few keys: those rows sum it.
  const bool known = to.statistics && at.count * TILE > TARN__ATTENTION_LONG;
  if (known) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = at.row0 + g + 8 * half;
      const int64_t number = at.q0 + (row < at.rows ? row : at.rows - 1);  // all lanes take part in the sum
      level[half] = to.statistics[2 * at.head * shape.query_rows + number] -
                    log2f(to.statistics[(2 * at.head + 1) * shape.query_rows + number]);
      mean[half] = row_product<WIDTH>(to.result + number * shape.d + column, to.dout + number * shape.d + column);
    }
  } else {
    softmax so_far = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}, {0.0f, 0.0f}};
    tarn__attention_pass<STAGES>(at.count, false, load, [&](int n, int stage) {
      each_unit<WIDTH, DROPS>(
          shape, at, rule, query_tile, dout_tile, key_tiles + stage * SIZE, value_tiles + stage * SIZE, n,
          [&](float(&s)[4][4], float(&dp)[4][4], int groups, const tarn__bf16 *) { advance(&so_far, s, dp, groups); });
    });
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float sum = tarn__quad_sum(so_far.sum[half]), most = so_far.most[half];
      level[half] = sum > 0.0f ? most + log2f(sum) : 0.0f;
      mean[half] = tarn__quad_sum(so_far.mean[half]) / (sum > 0.0f ? sum : 1.0f);
    }
  }
  if (to.dkeys_values) keep_rows(shape, to, at, level, mean);
  float dq[WIDTH / 8][4] = {};
  tarn__attention_pass<STAGES>(to.dqueries ? at.count : 0, !known, load, [&](int n, int stage) {
    each_unit<WIDTH, DROPS>(
        shape, at, rule, query_tile, dout_tile, key_tiles + stage * SIZE, value_tiles + stage * SIZE, n,
        [&](float(&s)[4][4], float(&dp)[4][4], int groups, const tarn__bf16 *keys) {
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[i][e] = tarn__exp2(s[i][e] - level[e / 2]) * (dp[i][e] - mean[e / 2]);
#pragma unroll
          for (int group = 0; group < 2; group++)
            if (group < groups)
              tarn__attention_add<WIDTH>(dq, s[2 * group], s[2 * group + 1], keys + 16 * group * PITCH);
        });
  });
  if (!to.dqueries) return;
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) dq[n][e] *= shape.scale;
  tarn__attention_store<WIDTH>(to.dqueries + (at.q0 + at.row0) * to.dquery_pitch + to.dquery_column + column,
                               to.dquery_pitch, dq, query_tile + (at.row0 - at.first) * PITCH, at.rows - at.row0,
                               to.add_queries);
}

// --- keys and values

// The weights p and the gradients ds of scores of 16 keys (rows) and 16 GROUPS queries (columns), of products s and dp;
// the weights as values see them, with dropout.
template <int GROUPS, bool DROPS>
static __device__ __forceinline__ void weigh(float s[2 * GROUPS][4], float dp[2 * GROUPS][4],
                                             const tarn__attention_shape &shape, float scale, float slope,
                                             const float *levels, const float *means, int key, int query, int q0,
                                             int head, int groups) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < GROUPS; half++) {
    if (half >= groups) break;
    uint32_t bits[2] = {};
    if (DROPS) {
      const uint32_t all =
          tarn__attention_bits(shape.mask, (uint32_t)(q0 + query + 16 * half), tarn__attention_block(head, key));
      bits[0] = __shfl_sync(TARN__WARP, all, 2 * t);
      bits[1] = __shfl_sync(TARN__WARP, all, 2 * t + 1);
    }
#pragma unroll
    for (int n = 2 * half; n < 2 * half + 2; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int column = 8 * n + 2 * t + e % 2, i = query + column, j = key + g + 8 * (e / 2);
        float x = s[n][e] * scale;
        if (slope != 0.0f) x -= slope * (float)abs(i - j);
        const float p = shape.causal && j > i ? 0.0f : tarn__exp2(x - levels[column]);
        float factor = 1.0f;
        if (DROPS) factor = bits[e % 2] >> (8 * (2 * (n % 2) + e / 2) + g) & 1u ? shape.mask.scale : 0.0f;
        s[n][e] = p * factor;
        dp[n][e] = p * (dp[n][e] * factor - means[column]);
      }
  }
}

// The tiles that pass by: queries of all heads of the group, head by head.
template <int WIDTH>
struct passing {
  static constexpr int STAGES = stages_of<WIDTH>, SIZE = tarn__attention_tile_size<WIDTH>;
  tarn__bf16 *queries, *douts;  // [STAGES, SIZE]
  float *numbers;               // [STAGES, 2, TILE]: levels, means
  int q0, rows, first, tiles;   // of each head, tiles of queries from row `first` on
  int head;                     // the first of the group

  __device__ __forceinline__ int head_of(int n) const { return head + n / tiles; }
  __device__ __forceinline__ int row_of(int n) const { return first + n % tiles * TARN__ATTENTION_TILE; }
  __device__ __forceinline__ void load(const tarn__attention_shape &shape,
                                       const tarn__attention_gradients<tarn__bf16> &to, int n, int stage) const {
    constexpr int TILE = TARN__ATTENTION_TILE;
    const int row = row_of(n), left = rows - row, i = (int)threadIdx.x % TILE, what = (int)threadIdx.x / TILE;
    const int64_t column = (int64_t)head_of(n) * WIDTH, at = q0 + row;
    tarn__attention_load<WIDTH>(queries + stage * SIZE,
                                to.queries + at * shape.query_pitch + shape.query_column + column, shape.query_pitch,
                                left);
    tarn__attention_load<WIDTH>(douts + stage * SIZE, to.dout + at * shape.d + column, shape.d, left);
    const float *from = row_numbers(to.rows, what, shape, head_of(n)) + at;
    tarn__copy_async4(numbers + (2 * stage + what) * TILE + i, from + (i < left ? i : 0), i < left ? 4 : 0);
  }
};

template <int WIDTH, bool DROPS>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_mma_keys_kernel(tarn__attention_shape shape, tarn__attention_gradients<tarn__bf16> to) {
  constexpr int TILE = TARN__ATTENTION_TILE, PITCH = tarn__attention_pitch<WIDTH>, STAGES = stages_of<WIDTH>;
  constexpr int SIZE = tarn__attention_tile_size<WIDTH>;
  constexpr int GROUPS = WIDTH <= 64 ? 2 : 1, UNIT = 16 * GROUPS;  // queries at a time, as registers allow
  TARN__SHARED(tarn__bf16, key_tile);
  tarn__bf16 *const value_tile = key_tile + SIZE;
  const int warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const tarn__attention_tile at = tarn__attention_tile_of(shape.key_offsets, shape.sequences, (int)blockIdx.x, TILE);
  const int k0 = shape.key_offsets[at.sequence], keys = shape.key_offsets[at.sequence + 1] - k0;
  if (at.first >= keys) return;
  passing<WIDTH> by;
  by.queries = value_tile + SIZE;
  by.douts = by.queries + STAGES * SIZE;
  by.numbers = (float *)(void *)(by.douts + STAGES * SIZE);
  by.q0 = shape.query_offsets[at.sequence];
  by.rows = shape.query_offsets[at.sequence + 1] - by.q0;
  by.first = shape.causal ? at.first : 0;
  by.tiles = (max(by.rows - by.first, 0) + TILE - 1) / TILE;
  by.head = (int)blockIdx.y * shape.group;
  const int key0 = at.first + 16 * warp;
  const int64_t kv_column = (int64_t)blockIdx.y * WIDTH, row = k0 + at.first;
  const tarn__bf16 *k = to.keys_values + row * shape.key_pitch + shape.key_column + kv_column;
  const tarn__bf16 *v = to.keys_values + row * shape.key_pitch + shape.value_column + kv_column;
  tarn__attention_load<WIDTH>(key_tile, k, shape.key_pitch, keys - at.first);
  tarn__attention_load<WIDTH>(value_tile, v, shape.key_pitch, keys - at.first);
  float dk[WIDTH / 8][4] = {}, dv[WIDTH / 8][4] = {};
  tarn__attention_pass<STAGES>(
      by.tiles * shape.group, false, [&](int n, int stage) { by.load(shape, to, n, stage); },
      [&](int n, int stage) {
        const int head = by.head_of(n);
        const float slope = tarn__attention_slope(shape, head);
#pragma unroll 1
        for (int unit = 0; unit < TILE / UNIT; unit++) {
          const int query = by.row_of(n) + UNIT * unit, groups = min((by.rows - query + 15) / 16, GROUPS);
          if (key0 >= keys || query >= by.rows || (shape.causal && query + UNIT <= key0)) continue;
          const tarn__bf16 *queries = by.queries + stage * SIZE + UNIT * unit * PITCH;
          const tarn__bf16 *douts = by.douts + stage * SIZE + UNIT * unit * PITCH;
          const float *levels = by.numbers + (2 * stage + LEVELS) * TILE + UNIT * unit;
          float s[2 * GROUPS][4], dp[2 * GROUPS][4];
          tarn__attention_scores<WIDTH, GROUPS>(s, key_tile + 16 * warp * PITCH, queries, groups);
          tarn__attention_scores<WIDTH, GROUPS>(dp, value_tile + 16 * warp * PITCH, douts, groups);
          weigh<GROUPS, DROPS>(s, dp, shape, shape.scale * 1.4426950408889634f, slope, levels, levels + TILE, key0,
                               query, by.q0, head, groups);
#pragma unroll
          for (int group = 0; group < GROUPS; group++)
            if (group < groups) {
              tarn__attention_add<WIDTH>(dv, s[2 * group], s[2 * group + 1], douts + 16 * group * PITCH);
              tarn__attention_add<WIDTH>(dk, dp[2 * group], dp[2 * group + 1], queries + 16 * group * PITCH);
            }
        }
      });
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) dk[n][e] *= shape.scale;
  tarn__bf16 *out = to.dkeys_values + (row + 16 * warp) * shape.key_pitch + kv_column;
  tarn__attention_store<WIDTH>(out + shape.key_column, shape.key_pitch, dk, key_tile + 16 * warp * PITCH, keys - key0,
                               to.add_keys_values);
  tarn__attention_store<WIDTH>(out + shape.value_column, shape.key_pitch, dv, value_tile + 16 * warp * PITCH,
                               keys - key0, to.add_keys_values);
}

template <int WIDTH, bool DROPS>
static tarn_status launch(const tarn__attention_shape &shape, const tarn__attention_gradients<tarn__bf16> &to,
                          cudaStream_t stream) {
  constexpr int TILE = TARN__ATTENTION_TILE, STAGES = stages_of<WIDTH>;
  const size_t shared = (2 + 2 * STAGES) * tarn__attention_tile_size<WIDTH> * sizeof(tarn__bf16);
  const dim3 query_blocks(tarn__attention_slots(shape.query_rows, shape.sequences, TILE), (unsigned)shape.heads);
  TARN__LAUNCH((attention_mma_queries_kernel<WIDTH, DROPS>), query_blocks, TARN__ATTENTION_THREADS, shared, stream,
               shape, to);
  if (!to.dkeys_values) return TARN_STATUS_OK;
  const dim3 key_blocks(tarn__attention_slots(shape.key_rows, shape.sequences, TILE),
                        (unsigned)(shape.heads / shape.group));
  TARN__LAUNCH((attention_mma_keys_kernel<WIDTH, DROPS>), key_blocks, TARN__ATTENTION_THREADS,
               shared + STAGES * 2 * TILE * sizeof(float), stream, shape, to);
  return TARN_STATUS_OK;
}

tarn_status tarn__attention_mma_backward(const tarn__attention_shape &shape,
                                         const tarn__attention_gradients<tarn__bf16> &to, cudaStream_t stream) {
  TARN__ATTENTION_WIDTHS(launch, shape, shape, to, stream);
}

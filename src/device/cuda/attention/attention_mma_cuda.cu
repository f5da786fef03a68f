#include "device/cuda/attention/attention_mma_cuda.h"

enum { STAGES = 2 };

bool tarn__attention_mma_fits(const tarn__attention_shape *shape) {
  const int width = shape->width;
  const int64_t elements =
      shape->query_pitch | shape->key_pitch | shape->query_column | shape->key_column | shape->value_column;
  return (width == 32 || width == 64 || width == 96 || width == 128) && elements % 8 == 0 && !shape->biases;
}

// The online softmax of 16 rows: their largest score and the sum of powers so far, in part (this lane's columns).
typedef struct softmax {
  float most[2], sum[2];
} softmax;

// Scores become powers; `out` and the sums are brought to the new largest score.
template <int WIDTH>
static __device__ __forceinline__ void advance(softmax *so_far, float s[8][4], float out[WIDTH / 8][4], int groups) {
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float most = so_far->most[half];
#pragma unroll
    for (int n = 0; n < 8; n++)
      if (n / 2 < groups) most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    most = tarn__quad_max(most);  // finite: each row sees the first of these keys
    factor[half] = tarn__exp2(so_far->most[half] - most);
    so_far->most[half] = most;
    so_far->sum[half] *= factor[half];
#pragma unroll
    for (int n = 0; n < 8; n++)
      if (n / 2 < groups) {
        s[n][2 * half] = tarn__exp2(s[n][2 * half] - most);
        s[n][2 * half + 1] = tarn__exp2(s[n][2 * half + 1] - most);
        so_far->sum[half] += s[n][2 * half] + s[n][2 * half + 1];
      }
  }
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) out[n][e] *= factor[e / 2];
}

// A group of 16 keys; weights that are dropped become 0, the others are scaled at the end.
static __device__ __forceinline__ void drop(float left[4], float right[4], const tarn__mask &mask, int row,
                                            uint32_t block) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, t = lane % 4;
  const uint32_t bits = __shfl_sync(TARN__WARP, tarn__attention_bits(mask, (uint32_t)row, block), lane / 4);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const int bit = 16 * (e / 2) + 2 * t + e % 2;
    if (!(bits >> bit & 1u)) left[e] = 0.0f;
    if (!(bits >> (bit + 8) & 1u)) right[e] = 0.0f;
  }
}

template <int WIDTH, bool DROPS>
static __global__ void __launch_bounds__(TARN__ATTENTION_THREADS)
    attention_mma_kernel(tarn__attention_shape shape, const tarn__bf16 *queries, const tarn__bf16 *keys_values,
                         tarn__bf16 *result, float *statistics) {
  constexpr int TILE = TARN__ATTENTION_TILE, PITCH = tarn__attention_pitch<WIDTH>;
  constexpr int SIZE = tarn__attention_tile_size<WIDTH>;
  TARN__SHARED(tarn__bf16, tiles);
  tarn__bf16 *const query_tile = tiles, *const key_tiles = tiles + SIZE, *const value_tiles = key_tiles + STAGES * SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE, g = lane / 4,
            t = lane % 4, head = (int)blockIdx.y;
  // The last tiles of a causal sequence, which see most keys, come first.
  const int slot = (int)(shape.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  const tarn__attention_tile at = tarn__attention_tile_of(shape.query_offsets, shape.sequences, slot, TILE);
  const int q0 = shape.query_offsets[at.sequence], rows = shape.query_offsets[at.sequence + 1] - q0;
  if (at.first >= rows) return;
  const int k0 = shape.key_offsets[at.sequence], keys = shape.key_offsets[at.sequence + 1] - k0;
  const tarn__attention_rule rule = {shape.scale * 1.4426950408889634f, tarn__attention_slope(shape, head), keys,
                                     shape.causal};
  const int64_t kv_column = (int64_t)(head / shape.group) * WIDTH;
  const tarn__bf16 *k = keys_values + k0 * shape.key_pitch + shape.key_column + kv_column;
  const tarn__bf16 *v = keys_values + k0 * shape.key_pitch + shape.value_column + kv_column;
  const int row0 = at.first + 16 * warp, seen = shape.causal ? min(keys, row0 + 16) : keys;
  const int count = ((shape.causal ? min(keys, at.first + TILE) : keys) + TILE - 1) / TILE;
  float out[WIDTH / 8][4] = {};
  softmax so_far = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
  tarn__attention_load<WIDTH>(
      query_tile, queries + (q0 + at.first) * shape.query_pitch + shape.query_column + (int64_t)head * WIDTH,
      shape.query_pitch, rows - at.first);
  tarn__attention_pass<STAGES>(
      count, false,
      [&](int n, int stage) {
        const int64_t from = (int64_t)n * TILE * shape.key_pitch;
        tarn__attention_load<WIDTH>(key_tiles + stage * SIZE, k + from, shape.key_pitch, keys - n * TILE);
        tarn__attention_load<WIDTH>(value_tiles + stage * SIZE, v + from, shape.key_pitch, keys - n * TILE);
      },
      [&](int n, int stage) {
        const int groups = min((seen - n * TILE + 15) / 16, TILE / 16);
        if (row0 >= rows || seen <= n * TILE) return;
        float s[TILE / 8][4];
        tarn__attention_scores<WIDTH, TILE / 16>(s, query_tile + 16 * warp * PITCH, key_tiles + stage * SIZE, groups);
        tarn__attention_finish<TILE / 16>(s, rule, row0 + g, n * TILE + 2 * t, groups);
        advance<WIDTH>(&so_far, s, out, groups);
#pragma unroll
        for (int group = 0; group < TILE / 16; group++)
          if (group < groups) {
            if (DROPS)
              drop(s[2 * group], s[2 * group + 1], shape.mask, q0 + row0,
                   tarn__attention_block(head, n * TILE + 16 * group));
            tarn__attention_add<WIDTH>(out, s[2 * group], s[2 * group + 1],
                                       value_tiles + stage * SIZE + 16 * group * PITCH);
          }
      });
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const float sum = tarn__quad_sum(so_far.sum[half]), inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    const int row = row0 + g + 8 * half;
    if (statistics && t == 0 && row < rows) {
      statistics[2 * head * shape.query_rows + q0 + row] = so_far.most[half];
      statistics[(2 * head + 1) * shape.query_rows + q0 + row] = inverse;
    }
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) {
      out[n][2 * half] *= inverse * (DROPS ? shape.mask.scale : 1.0f);
      out[n][2 * half + 1] *= inverse * (DROPS ? shape.mask.scale : 1.0f);
    }
  }
  tarn__attention_store<WIDTH>(result + (q0 + row0) * shape.d + (int64_t)head * WIDTH, shape.d, out,
                               query_tile + 16 * warp * PITCH, rows - row0, false);
}

template <int WIDTH, bool DROPS>
static tarn_status launch(const tarn__attention_shape &shape, const tarn__bf16 *queries, const tarn__bf16 *keys_values,
                          tarn__bf16 *result, float *statistics, cudaStream_t stream) {
  const dim3 blocks(tarn__attention_slots(shape.query_rows, shape.sequences, TARN__ATTENTION_TILE),
                    (unsigned)shape.heads);
  const size_t shared = (1 + 2 * STAGES) * tarn__attention_tile_size<WIDTH> * sizeof(tarn__bf16);
  TARN__LAUNCH((attention_mma_kernel<WIDTH, DROPS>), blocks, TARN__ATTENTION_THREADS, shared, stream, shape, queries,
               keys_values, result, statistics);
  return TARN_STATUS_OK;
}

tarn_status tarn__attention_mma(const tarn__attention_shape &shape, const tarn__bf16 *queries,
                                const tarn__bf16 *keys_values, tarn__bf16 *result, float *statistics,
                                cudaStream_t stream) {
  TARN__ATTENTION_WIDTHS(launch, shape, shape, queries, keys_values, result, statistics, stream);
}

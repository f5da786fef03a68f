// What the files of attention with relative keys and values share: a node and a tile of it, for kernels.
#ifndef TARN_DEVICE_CUDA_ATTENTION_RELATIVE_ATTENTION_H
#define TARN_DEVICE_CUDA_ATTENTION_RELATIVE_ATTENTION_H

#include "device/cuda/attention/pair_tiles.h"

extern "C" {
#include "ops/relative_attention.h"
}

template <typename T>
struct tarn__relative_node {
  const T *queries, *keys, *values;  // from their first columns on
  int64_t query_step, key_step;
  const T *key_table, *value_table;  // at distance 0; value_table NULL: none
  int64_t reach, heads, group, width, rows;
  bool causal, fp32;  // fp32: the tables are floats
  float scale;
  const int32_t *offset;
  int64_t tiles;  // per sentence
  tarn__mask mask;
};

// Blocks of 32 own rows of each of `heads` heads of each sentence, and of each 128 of their columns.
template <typename T>
static dim3 tarn__relative_blocks(const tarn__relative_node<T> &w, const tarn__tensor *offsets, int64_t times,
                                  int64_t heads) {
  return dim3((unsigned)(times * (offsets->cols - 1) * w.tiles), (unsigned)heads,
              tarn__blocks(w.width, TARN__PAIR_COLUMNS));
}

// `queries` and `keys_values`: where their values are read.
template <typename T>
static tarn__relative_node<T> tarn__relative_of(const tarn__exec *exec, const tarn__node *node, const void *queries,
                                                const void *keys_values) {
  const tarn__attention_attr *attr = (const tarn__attention_attr *)node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *q = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__tensor *key_table = node->in[TARN__RELATIVE_KEYS], *value_table = node->in[TARN__RELATIVE_VALUES];
  const tarn__tensor *offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  tarn__relative_node<T> w = {};
  w.width = spec->d / spec->heads;
  w.fp32 = key_table->dtype == TARN__F32;
  const size_t zero = (size_t)(attr->reach * w.width) * tarn__dtype_size(key_table->dtype);
  w.queries = (const T *)queries + spec->query_column;
  w.keys = (const T *)keys_values + spec->key_column;
  w.values = (const T *)keys_values + spec->value_column;
  w.query_step = q->cols;
  w.key_step = kv ? kv->cols : q->cols;
  w.key_table = (const T *)((const char *)key_table->data + zero);
  if (value_table) w.value_table = (const T *)((const char *)value_table->data + zero);
  w.reach = attr->reach;
  w.heads = spec->heads;
  w.group = spec->heads / attr->kv_heads;
  w.rows = q->rows;
  w.causal = spec->causal != 0;
  w.scale = (float)(1.0 / sqrt((double)w.width));
  w.offset = (const int32_t *)offsets->data;
  w.tiles = (tarn__longest_sentence(offsets) + TARN__PAIR - 1) / TARN__PAIR;
  w.mask = tarn__mask_of(attr->dropout, exec);
  return w;
}

// A tile of own rows of a head: the sentence's first row and length, and the tile's first row in it.
typedef struct tarn__relative_tile {
  int64_t first, n, own, h;
} tarn__relative_tile;

template <typename T>
static __device__ __forceinline__ tarn__relative_tile tarn__relative_tile_of(const tarn__relative_node<T> &w,
                                                                             int64_t block, int64_t h) {
  const int64_t s = block / w.tiles, first = w.offset[s];
  return {first, w.offset[s + 1] - first, block % w.tiles * TARN__PAIR, h};
}

// 32 rows of a head from row `row` of the sentence on: queries, keys or values.
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__relative_queries(const tarn__relative_node<T> &w,
                                                                            const T *queries, int64_t step,
                                                                            const tarn__relative_tile &t, int64_t h,
                                                                            int64_t row) {
  return {queries + (t.first + row) * step + h * w.width, step, t.n - row, false};
}
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__relative_keys(const tarn__relative_node<T> &w, const T *keys,
                                                                         const tarn__relative_tile &t, int64_t h,
                                                                         int64_t row) {
  return {keys + (t.first + row) * w.key_step + h / w.group * w.width, w.key_step, t.n - row, false};
}
template <typename T>
static __device__ __forceinline__ tarn__pair_near<T> tarn__relative_near(const tarn__relative_node<T> &w,
                                                                         const T *table, int64_t first) {
  return {table, w.reach, first, w.fp32};
}

// Whether query i sees key j.
template <typename T>
static __device__ __forceinline__ bool tarn__relative_sees(const tarn__relative_node<T> &w, int64_t n, int64_t i,
                                                           int64_t j) {
  return i < n && j < n && (!w.causal || j <= i);
}

// Dropout factors of a tile whose own rows are queries: kept[r] for the warp's own row r and this lane's key. A lane in
// sixteen computes each block of 8 keys of a row.
template <typename T>
static __device__ __forceinline__ void tarn__relative_kept(float (&kept)[TARN__PAIR_OWN],
                                                           const tarn__relative_node<T> &w,
                                                           const tarn__relative_tile &t, int64_t j0, float *shared) {
  const int lane = tarn__pair_lane(), blocks = TARN__PAIR / TARN__DROPOUT_BLOCK;
  uint32_t *words = reinterpret_cast<uint32_t *>(shared + TARN__PAIR_WORDS) + tarn__pair_warp() * 16 * 4;
  for (int r = 0; r < TARN__PAIR_OWN; r++) kept[r] = 1.0f;
  if (w.mask.threshold == 0) return;
  __syncwarp();
  if (lane < TARN__PAIR_OWN * blocks) {
    const int64_t row = t.first + t.own + tarn__pair_own(lane / blocks);
    const int64_t block = tarn__attention_column(t.h, j0) / TARN__DROPOUT_BLOCK + lane % blocks;
    tarn__mask_words(words + 4 * lane, w.mask, (uint32_t)row, (uint32_t)block);
  }
  __syncwarp();
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int in = lane % TARN__DROPOUT_BLOCK;
    const uint32_t word = words[4 * (r * blocks + lane / TARN__DROPOUT_BLOCK) + in / 2];
    kept[r] = (word >> (16 * (in % 2)) & 0xFFFFu) >= w.mask.threshold ? w.mask.scale : 0.0f;
  }
}

// The same where own rows are keys, 4 in one block of 8, and this lane's other row is query i of head h.
template <typename T>
static __device__ __forceinline__ void tarn__relative_kept_keys(float (&kept)[TARN__PAIR_OWN],
                                                                const tarn__relative_node<T> &w,
                                                                const tarn__relative_tile &t, int64_t h, int64_t i) {
  for (int r = 0; r < TARN__PAIR_OWN; r++) kept[r] = 1.0f;
  if (w.mask.threshold == 0) return;
  const int64_t column = tarn__attention_column(h, t.own + tarn__pair_own(0));
  uint32_t words[4];
  tarn__mask_words(words, w.mask, (uint32_t)(t.first + i), (uint32_t)(column / TARN__DROPOUT_BLOCK));
  const bool second = column % TARN__DROPOUT_BLOCK != 0;
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const uint32_t word = second ? words[2 + r / 2] : words[r / 2];
    kept[r] = (word >> (16 * (r % 2)) & 0xFFFFu) >= w.mask.threshold ? w.mask.scale : 0.0f;
  }
}

void tarn__cuda_relative_backward_entries(tarn__device_kernel *kernels);
void tarn__cuda_relative_rows_entries(tarn__device_kernel *kernels);

#endif

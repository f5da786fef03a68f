// Synthetic attention in pairs of tiles: a node for kernels, and the logits and scores of a pair.
#ifndef TARN_DEVICE_CUDA_ATTENTION_SYNTHESIS_TILES_H
#define TARN_DEVICE_CUDA_ATTENTION_SYNTHESIS_TILES_H

#include "device/cuda/attention/pair_tiles.h"

extern "C" {
#include "ops/synthesis.h"
}

template <typename T>
struct tarn__synthesis_node {
  tarn__synthesis_form form;
  bool causal, fp32;  // fp32: the weight is of floats
  int64_t heads, width, places, left, source_width, rows;
  const T *queries, *keys, *values;  // queries and keys NULL: there is no mix
  int64_t step, key_step;            // of queries; of keys and values
  const T *source, *weight;
  int64_t source_step;
  const float *bias, *mix;  // parameters of one row, in fp32; NULL: none
  float scale;
  const int32_t *offset;
  int64_t sentences, tiles;  // tiles: per sentence
};

// `rows`: of incremental decoding, whose keys and values are in a cache.
template <typename T>
static tarn__synthesis_node<T> tarn__synthesis_of(const tarn__node *node, bool rows) {
  const tarn__synthesis_spec *spec = (const tarn__synthesis_spec *)node->attr;
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *source = node->in[TARN__SYNTHESIS_SOURCE];
  const tarn__tensor *weight = node->in[TARN__SYNTHESIS_WEIGHT], *bias = node->in[TARN__SYNTHESIS_BIAS];
  const tarn__tensor *mix = node->in[TARN__SYNTHESIS_MIX], *offsets = node->in[TARN__SYNTHESIS_OFFSETS];
  const tarn__tensor *kv = rows ? node->in[TARN__SYNTHESIS_CACHE] : x;
  const int64_t first = !rows && mix ? spec->d : 0;  // column of keys
  tarn__synthesis_node<T> w = {};
  w.form = spec->form;
  w.causal = spec->causal != 0;
  w.heads = spec->heads;
  w.width = spec->d / spec->heads;
  w.places = spec->places;
  w.left = spec->left;
  w.source_width = tarn__synthesis_width(node);
  w.rows = x->rows;
  if (mix) {
    w.queries = (const T *)x->data;
    w.keys = (const T *)kv->data + first;
    w.mix = (const float *)mix->data;
  }
  w.values = (const T *)kv->data + first + (mix ? spec->d : 0);
  w.step = x->cols;
  w.key_step = kv->cols;
  if (source) w.source = (const T *)source->data, w.source_step = source->cols;
  if (weight) w.weight = (const T *)weight->data, w.fp32 = weight->dtype == TARN__F32;
  if (bias) w.bias = (const float *)bias->data;
  w.scale = (float)(1.0 / sqrt((double)w.width));
  if (rows) return w;
  w.offset = (const int32_t *)offsets->data;
  w.sentences = offsets->cols - 1;
  w.tiles = (tarn__longest_sentence(offsets) + TARN__PAIR - 1) / TARN__PAIR;
  return w;
}

// The weights of logits and scores in the mixture.
template <typename T>
static __device__ __forceinline__ void tarn__synthesis_shares(float share[2], const tarn__synthesis_node<T> &w) {
  share[0] = w.mix ? 1.0f / (1.0f + expf(w.mix[1] - w.mix[0])) : 1.0f;
  share[1] = w.mix ? 1.0f / (1.0f + expf(w.mix[0] - w.mix[1])) : 0.0f;
}

// A pair of tiles of a sentence: its first row and length, the first query and the first key.
typedef struct tarn__synthesis_pair {
  int64_t first, n, query, key, h;
} tarn__synthesis_pair;

template <typename T>
static __device__ __forceinline__ bool tarn__synthesis_sees(const tarn__synthesis_node<T> &w, int64_t n, int64_t i,
                                                            int64_t j) {
  return i < n && j < n && (!w.causal || j <= i);
}

// 32 rows of a head of queries or gradients of results, of sources, of keys or values, and of the weight.
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__synthesis_rows_at(const T *data, int64_t step, int64_t row,
                                                                             int64_t column, int64_t count) {
  return {data + row * step + column, step, count, false};
}
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__synthesis_sources(const tarn__synthesis_node<T> &w,
                                                                             const T *source,
                                                                             const tarn__synthesis_pair &t) {
  return tarn__synthesis_rows_at(source, w.source_step, t.first + t.query, t.h * w.source_width, t.n - t.query);
}
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__synthesis_weights(const tarn__synthesis_node<T> &w,
                                                                             const tarn__synthesis_pair &t) {
  const int64_t at = (t.h * w.places + t.key) * w.source_width;
  const T *data = w.fp32 ? reinterpret_cast<const T *>(reinterpret_cast<const float *>(w.weight) + at) : w.weight + at;
  return {data, w.source_width, t.n - t.key, w.fp32};
}
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__synthesis_queries(const tarn__synthesis_node<T> &w,
                                                                             const T *queries,
                                                                             const tarn__synthesis_pair &t) {
  return tarn__synthesis_rows_at(queries, w.step, t.first + t.query, t.h * w.width, t.n - t.query);
}
template <typename T>
static __device__ __forceinline__ tarn__pair_rows<T> tarn__synthesis_keys(const tarn__synthesis_node<T> &w,
                                                                          const T *keys,
                                                                          const tarn__synthesis_pair &t) {
  return tarn__synthesis_rows_at(keys, w.key_step, t.first + t.key, t.h * w.width, t.n - t.key);
}

// sums[r] += own row times other row, whichever of queries and keys the own rows are.
template <tarn__pair_side side, typename T>
static __device__ __forceinline__ void tarn__synthesis_products(float (&sums)[TARN__PAIR_OWN],
                                                                const tarn__pair_rows<T> &queries,
                                                                const tarn__pair_rows<T> &keys, int64_t width,
                                                                float *shared) {
  const tarn__pair_near<T> none = {};
  const bool own = side == TARN__PAIR_QUERIES;
  tarn__pair_products<side>(sums, own ? queries : keys, own ? keys : queries, none, width, shared);
}

// The logit of one pair of the forms without products.
template <typename T>
static __device__ __forceinline__ float tarn__synthesis_logit(const tarn__synthesis_node<T> &w, int64_t row, int64_t h,
                                                              int64_t i, int64_t j) {
  if (w.form == TARN__SYNTHESIS_RANDOM) return tarn__pair_get(w.weight, (h * w.places + i) * w.places + j, w.fp32);
  const T *own = w.source + row * w.source_step + h * w.source_width;
  const unsigned left = (unsigned)w.left;
  return tarn__get(own[(unsigned)j % left]) * tarn__get(own[left + (unsigned)j / left]);
}

// Logits and scaled scores of a pair of tiles.
template <tarn__pair_side side, typename T>
static __device__ __forceinline__ void tarn__synthesis_weigh(float (&logits)[TARN__PAIR_OWN],
                                                             float (&scores)[TARN__PAIR_OWN],
                                                             const tarn__synthesis_node<T> &w,
                                                             const tarn__synthesis_pair &t, float *shared) {
  for (int r = 0; r < TARN__PAIR_OWN; r++) logits[r] = scores[r] = 0.0f;
  if (w.form == TARN__SYNTHESIS_DENSE)
    tarn__synthesis_products<side>(logits, tarn__synthesis_sources(w, w.source, t), tarn__synthesis_weights(w, t),
                                   w.source_width, shared);
  if (w.queries)
    tarn__synthesis_products<side>(scores, tarn__synthesis_queries(w, w.queries, t), tarn__synthesis_keys(w, w.keys, t),
                                   w.width, shared);
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int own = tarn__pair_own(r), other = tarn__pair_lane();
    const int64_t i = t.query + (side == TARN__PAIR_QUERIES ? own : other);
    const int64_t j = t.key + (side == TARN__PAIR_QUERIES ? other : own);
    scores[r] *= w.scale;
    if (i >= t.n || j >= t.n) continue;
    if (w.form != TARN__SYNTHESIS_DENSE)
      logits[r] = tarn__synthesis_logit(w, t.first + i, t.h, i, j);
    else if (w.bias)
      logits[r] += w.bias[t.h * w.places + j];
  }
}

// The end of the keys that a tile of queries sees.
template <typename T>
static __device__ __forceinline__ int64_t tarn__synthesis_end(const tarn__synthesis_node<T> &w,
                                                              const tarn__synthesis_pair &t) {
  return w.causal && t.query + TARN__PAIR < t.n ? t.query + TARN__PAIR : t.n;
}

template <typename T>
static __device__ __forceinline__ tarn__synthesis_pair tarn__synthesis_pair_of(const tarn__synthesis_node<T> &w,
                                                                               int64_t block, int64_t h) {
  const int64_t s = block / w.tiles, first = w.offset[s], at = block % w.tiles * TARN__PAIR;
  return {first, w.offset[s + 1] - first, at, at, h};
}

void tarn__cuda_synthesis_backward_entries(tarn__device_kernel *kernels);

#endif

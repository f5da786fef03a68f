// Attention with relative keys and values, and its tangents: a block has 32 queries of a head, and 128 of its columns.
#include "device/cuda/attention/relative_attention_cuda.h"

extern "C" {
#include "graph/tangents.h"
}

// Multiplies what a row has summed so far.
static __device__ __forceinline__ void scale_row(float (&sums)[TARN__PAIR_CHUNKS][TARN__PAIR_OWN], int r,
                                                 float factor) {
#pragma unroll
  for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++) sums[chunk][r] *= factor;
}

// The end of the keys that a tile of queries sees.
template <typename T>
static __device__ __forceinline__ int64_t keys_seen(const tarn__relative_node<T> &w, const tarn__relative_tile &t) {
  return w.causal && t.own + TARN__PAIR < t.n ? t.own + TARN__PAIR : t.n;
}

template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS) relative_attention_kernel(T *y, tarn__relative_node<T> w) {
  TARN__SHARED(float, shared);
  const tarn__relative_tile t = tarn__relative_tile_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int lane = tarn__pair_lane();
  float *weights = shared + TARN__PAIR_WEIGHTS, sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin();
  if (t.own >= t.n) return;
  const auto own = tarn__relative_queries(w, w.queries, w.query_step, t, t.h, t.own);
  for (int64_t j0 = 0; j0 < keys_seen(w, t); j0 += TARN__PAIR) {
    float scores[TARN__PAIR_OWN] = {}, kept[TARN__PAIR_OWN];
    tarn__pair_products<TARN__PAIR_QUERIES>(scores, own, tarn__relative_keys(w, w.keys, t, t.h, j0),
                                            tarn__relative_near(w, w.key_table, j0 - t.own), w.width, shared);
    tarn__relative_kept(kept, w, t, j0, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const bool sees = tarn__relative_sees(w, t.n, t.own + tarn__pair_own(r), j0 + lane);
      float factor;
      const float e = tarn__pair_softmax_take(&softmax[r], sees ? scores[r] * w.scale : -INFINITY, &factor);
      scale_row(sums, r, factor);
      weights[tarn__pair_own(r) * TARN__PAIR + lane] = kept[r] * e;
    }
    tarn__pair_sums(sums, weights, tarn__relative_keys(w, w.values, t, t.h, j0),
                    tarn__relative_near(w, w.value_table, j0 - t.own), column, w.width, shared);
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) scale_row(sums, r, 1.0f / tarn__warp_sum(softmax[r].sum));
  tarn__pair_write(y + (t.first + t.own) * w.heads * w.width + t.h * w.width, w.heads * w.width, t.n - t.own, sums,
                   column, w.width, false);
}

// What moves, of all directions, each `rows` rows behind the one before; NULL: nothing.
template <typename T>
struct moved {
  const T *queries, *keys, *values;
};

// The tangent of a result is that of the sum of weights times values, and of the weights' sum: with e the exponentials
// of scores and s their tangents, (sum of e (s v + v') - (sum of e s / sum of e) sum of e v) / sum of e, where dropout
// acts on all but the sums of e and e s.
template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    relative_attention_tangent_kernel(T *dy, tarn__relative_node<T> w, moved<T> d, int64_t blocks) {
  TARN__SHARED(float, shared);
  const int64_t direction = blockIdx.x / blocks, column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const tarn__relative_tile t = tarn__relative_tile_of(w, blockIdx.x % blocks, blockIdx.y);
  const int64_t queries = direction * w.rows * w.query_step, keys = direction * w.rows * w.key_step;
  const int lane = tarn__pair_lane();
  float *moving = shared + TARN__PAIR_WEIGHTS, *weights = moving + TARN__PAIR * TARN__PAIR;
  float sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, plain[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  float of_scores[TARN__PAIR_OWN] = {};
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  const tarn__pair_near<T> none = {};
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin();
  if (t.own >= t.n) return;
  const auto own = tarn__relative_queries(w, w.queries, w.query_step, t, t.h, t.own);
  for (int64_t j0 = 0; j0 < keys_seen(w, t); j0 += TARN__PAIR) {
    const auto others = tarn__relative_keys(w, w.keys, t, t.h, j0),
               values = tarn__relative_keys(w, w.values, t, t.h, j0);
    const auto near = tarn__relative_near(w, w.key_table, j0 - t.own);
    const auto near_values = tarn__relative_near(w, w.value_table, j0 - t.own);
    float scores[TARN__PAIR_OWN] = {}, kept[TARN__PAIR_OWN], change[TARN__PAIR_OWN] = {};
    tarn__pair_products<TARN__PAIR_QUERIES>(scores, own, others, near, w.width, shared);
    if (d.queries)
      tarn__pair_products<TARN__PAIR_QUERIES>(
          change, tarn__relative_queries(w, d.queries + queries, w.query_step, t, t.h, t.own), others, near, w.width,
          shared);
    if (d.keys)
      tarn__pair_products<TARN__PAIR_QUERIES>(change, own, tarn__relative_keys(w, d.keys + keys, t, t.h, j0), none,
                                              w.width, shared);
    tarn__relative_kept(kept, w, t, j0, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const bool sees = tarn__relative_sees(w, t.n, t.own + tarn__pair_own(r), j0 + lane);
      float factor;
      const float e = tarn__pair_softmax_take(&softmax[r], sees ? scores[r] * w.scale : -INFINITY, &factor);
      scale_row(sums, r, factor);
      scale_row(plain, r, factor);
      of_scores[r] = of_scores[r] * factor + e * change[r] * w.scale;
      moving[tarn__pair_own(r) * TARN__PAIR + lane] = kept[r] * e * change[r] * w.scale;
      weights[tarn__pair_own(r) * TARN__PAIR + lane] = kept[r] * e;
    }
    tarn__pair_sums(sums, moving, values, near_values, column, w.width, shared);
    tarn__pair_sums(plain, weights, values, near_values, column, w.width, shared);
    if (d.values)
      tarn__pair_sums(sums, weights, tarn__relative_keys(w, d.values + keys, t, t.h, j0), none, column, w.width,
                      shared);
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const float share = 1.0f / tarn__warp_sum(softmax[r].sum), mean = tarn__warp_sum(of_scores[r]) * share;
#pragma unroll
    for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++)
      sums[chunk][r] = (sums[chunk][r] - mean * plain[chunk][r]) * share;
  }
  const int64_t row = direction * w.rows + t.first + t.own;
  tarn__pair_write(dy + row * w.heads * w.width + t.h * w.width, w.heads * w.width, t.n - t.own, sums, column, w.width,
                   false);
}

template <typename T>
static tarn__relative_node<T> node_of(const tarn__exec *exec, const tarn__node *node) {
  return tarn__relative_of<T>(exec, node, node->in[TARN__ATTENTION_QUERIES]->data,
                              node->in[TARN__ATTENTION_KEYS_VALUES]->data);
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__relative_node<T> w = node_of<T>(exec, node);
  TARN__LAUNCH(relative_attention_kernel<T>,
               tarn__relative_blocks(w, node->in[TARN__ATTENTION_QUERY_OFFSETS], 1, w.heads), TARN__PAIR_THREADS,
               TARN__PAIR_FLOATS * sizeof(float), tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_spec *spec = (const tarn__attention_spec *)node->attr;
  const tarn__relative_node<T> w = node_of<T>(exec, node);
  const tarn__tensor *offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  const tarn__tensor *dq = node->in[TARN__RELATIVE_MOVED_QUERIES], *dkv = node->in[TARN__RELATIVE_MOVED_KEYS_VALUES];
  moved<T> d = {};
  if (dq) d.queries = (const T *)dq->data + spec->query_column;
  if (dkv) d.keys = (const T *)dkv->data + spec->key_column, d.values = (const T *)dkv->data + spec->value_column;
  TARN__LAUNCH(relative_attention_tangent_kernel<T>,
               tarn__relative_blocks(w, offsets, tarn__tangent_directions(node->out[0], w.rows), w.heads),
               TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float), tarn__cuda_stream(exec->stream),
               (T *)node->out[0]->data, w, d, (offsets->cols - 1) * w.tiles);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

void tarn__cuda_relative_attention_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RELATIVE_ATTENTION].run = forward_node;
  kernels[TARN__OP_RELATIVE_ATTENTION_TANGENT].run = tangent_node;
  tarn__cuda_relative_backward_entries(kernels);
  tarn__cuda_relative_rows_entries(kernels);
}

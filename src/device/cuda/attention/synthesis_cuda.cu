// Synthetic attention and its tangents: a block has 32 tokens of a head, and 128 of its columns; and its single rows.
#include "device/cuda/attention/single_rows.h"
#include "device/cuda/attention/synthesis_tiles.h"

extern "C" {
#include "graph/tangents.h"
}

static __device__ __forceinline__ void scale_row(float (&sums)[TARN__PAIR_CHUNKS][TARN__PAIR_OWN], int r,
                                                 float factor) {
#pragma unroll
  for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++) sums[chunk][r] *= factor;
}

template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS) synthesis_kernel(T *y, tarn__synthesis_node<T> w) {
  TARN__SHARED(float, shared);
  tarn__synthesis_pair t = tarn__synthesis_pair_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS, d = w.heads * w.width;
  const int lane = tarn__pair_lane();
  const tarn__pair_near<T> none = {};
  float *weights = shared + TARN__PAIR_WEIGHTS, sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, share[2];
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin();
  if (t.query >= t.n) return;
  tarn__synthesis_shares(share, w);
  const int64_t end = tarn__synthesis_end(w, t);
  for (t.key = 0; t.key < end; t.key += TARN__PAIR) {
    float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], factor;
    tarn__synthesis_weigh<TARN__PAIR_QUERIES>(logits, scores, w, t, shared);
    __syncwarp();  // other lanes have read the weights of the tile before
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const bool sees = tarn__synthesis_sees(w, t.n, t.query + tarn__pair_own(r), t.key + lane);
      const float both = sees ? share[0] * logits[r] + share[1] * scores[r] : -INFINITY;
      const float e = tarn__pair_softmax_take(&softmax[r], both, &factor);
      scale_row(sums, r, factor);
      weights[tarn__pair_own(r) * TARN__PAIR + lane] = e;
    }
    tarn__pair_sums(sums, weights, tarn__synthesis_keys(w, w.values, t), none, column, w.width, shared);
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) scale_row(sums, r, 1.0f / tarn__warp_sum(softmax[r].sum));
  tarn__pair_write(y + (t.first + t.query) * d + t.h * w.width, d, t.n - t.query, sums, column, w.width, false);
}

// --- tangents

// Of queries, keys, values and sources, all directions; NULL: zero.
template <typename T>
struct moved {
  const T *queries, *keys, *values, *source;
};

// The tangents of logits and scores of a pair of tiles, in their shares.
template <typename T>
static __device__ __forceinline__ void push_pairs(float (&change)[TARN__PAIR_OWN], const tarn__synthesis_node<T> &w,
                                                  const moved<T> &d, const tarn__synthesis_pair &t, int64_t block,
                                                  const float share[2], float *shared) {
  float scores[TARN__PAIR_OWN] = {};
  for (int r = 0; r < TARN__PAIR_OWN; r++) change[r] = 0.0f;
  if (d.source && w.form == TARN__SYNTHESIS_DENSE)
    tarn__synthesis_products<TARN__PAIR_QUERIES>(change,
                                                 tarn__synthesis_sources(w, d.source + block * w.source_step, t),
                                                 tarn__synthesis_weights(w, t), w.source_width, shared);
  if (w.queries && d.queries) {
    tarn__synthesis_products<TARN__PAIR_QUERIES>(scores, tarn__synthesis_queries(w, d.queries + block * w.step, t),
                                                 tarn__synthesis_keys(w, w.keys, t), w.width, shared);
    tarn__synthesis_products<TARN__PAIR_QUERIES>(scores, tarn__synthesis_queries(w, w.queries, t),
                                                 tarn__synthesis_keys(w, d.keys + block * w.key_step, t), w.width,
                                                 shared);
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int64_t i = t.query + tarn__pair_own(r), j = t.key + tarn__pair_lane();
    if (d.source && w.form == TARN__SYNTHESIS_FACTORISED && i < t.n && j < t.n) {
      const int64_t at = (t.first + i) * w.source_step + t.h * w.source_width;
      const int64_t left = j % w.left, right = w.left + j / w.left;
      const T *own = w.source + at, *moving = d.source + block * w.source_step + at;
      change[r] = tarn__get(moving[left]) * tarn__get(own[right]) + tarn__get(own[left]) * tarn__get(moving[right]);
    }
    change[r] = share[0] * change[r] + share[1] * w.scale * scores[r];
  }
}

// As in attention with relative keys and values, without dropout.
template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    synthesis_tangent_kernel(T *dy, tarn__synthesis_node<T> w, moved<T> d) {
  TARN__SHARED(float, shared);
  const int64_t blocks = w.sentences * w.tiles, block = blockIdx.x / blocks * w.rows, width = w.heads * w.width;
  tarn__synthesis_pair t = tarn__synthesis_pair_of(w, blockIdx.x % blocks, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int lane = tarn__pair_lane();
  const tarn__pair_near<T> none = {};
  float *moving = shared + TARN__PAIR_WEIGHTS, *weights = moving + TARN__PAIR * TARN__PAIR, share[2];
  float sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, plain[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  float of_change[TARN__PAIR_OWN] = {};
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin();
  if (t.query >= t.n) return;
  tarn__synthesis_shares(share, w);
  const int64_t end = tarn__synthesis_end(w, t);
  for (t.key = 0; t.key < end; t.key += TARN__PAIR) {
    float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], change[TARN__PAIR_OWN], factor;
    tarn__synthesis_weigh<TARN__PAIR_QUERIES>(logits, scores, w, t, shared);
    __syncwarp();  // other lanes have read the weights of the tile before
    push_pairs(change, w, d, t, block, share, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const bool sees = tarn__synthesis_sees(w, t.n, t.query + tarn__pair_own(r), t.key + lane);
      const float both = sees ? share[0] * logits[r] + share[1] * scores[r] : -INFINITY;
      const float e = tarn__pair_softmax_take(&softmax[r], both, &factor);
      scale_row(sums, r, factor);
      scale_row(plain, r, factor);
      of_change[r] = of_change[r] * factor + e * change[r];
      moving[tarn__pair_own(r) * TARN__PAIR + lane] = e * change[r];
      weights[tarn__pair_own(r) * TARN__PAIR + lane] = e;
    }
    tarn__pair_sums(sums, moving, tarn__synthesis_keys(w, w.values, t), none, column, w.width, shared);
    tarn__pair_sums(plain, weights, tarn__synthesis_keys(w, w.values, t), none, column, w.width, shared);
    if (d.values)
      tarn__pair_sums(sums, weights, tarn__synthesis_keys(w, d.values + block * w.key_step, t), none, column, w.width,
                      shared);
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const float part = 1.0f / tarn__warp_sum(softmax[r].sum), mean = tarn__warp_sum(of_change[r]) * part;
#pragma unroll
    for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++)
      sums[chunk][r] = (sums[chunk][r] - mean * plain[chunk][r]) * part;
  }
  tarn__pair_write(dy + (block + t.first + t.query) * width + t.h * w.width, width, t.n - t.query, sums, column,
                   w.width, false);
}

// --- single rows

template <typename T>
static __global__ void synthesis_rows_kernel(T *y, tarn__synthesis_node<T> w, const int32_t *list,
                                             const int32_t *range) {
  TARN__SHARED(float, shared);
  const int64_t i = blockIdx.x, h = blockIdx.y, first = range[2 * i], count = range[2 * i + 1] - first;
  const T *q = w.queries ? w.queries + i * w.step + h * w.width : (const T *)nullptr;
  const T *source = w.source ? w.source + i * w.source_step + h * w.source_width : (const T *)nullptr;
  float share[2];
  tarn__synthesis_shares(share, w);
  tarn__single_row(
      y + (i * w.heads + h) * w.width, count, w.width,
      [&](int64_t j) {
        float logit = 0.0f, score = 0.0f;
        if (w.form != TARN__SYNTHESIS_DENSE) {
          logit = tarn__synthesis_logit(w, i, h, count - 1, j);
        } else {
          const int64_t at = h * w.places + j;
          for (int64_t c = 0; c < w.source_width; c++)
            logit += tarn__get(source[c]) * tarn__pair_get(w.weight, at * w.source_width + c, w.fp32);
          if (w.bias) logit += w.bias[at];
        }
        if (!q) return logit;
        const T *k = w.keys + list[first + j] * w.key_step + h * w.width;
        for (int64_t c = 0; c < w.width; c++) score += tarn__get(q[c]) * tarn__get(k[c]);
        return share[0] * logit + share[1] * w.scale * score;
      },
      [&](int64_t j, int64_t c) { return tarn__get(w.values[list[first + j] * w.key_step + h * w.width + c]); },
      shared);
}

// --- the host's side

template <typename T>
static dim3 blocks_of(const tarn__synthesis_node<T> &w, int64_t times) {
  return dim3((unsigned)(times * w.sentences * w.tiles), (unsigned)w.heads, tarn__blocks(w.width, TARN__PAIR_COLUMNS));
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__synthesis_node<T> w = tarn__synthesis_of<T>(node, false);
  TARN__LAUNCH(synthesis_kernel<T>, blocks_of(w, 1), TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float),
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__synthesis_node<T> w = tarn__synthesis_of<T>(node, false);
  const tarn__tensor *dx = node->in[TARN__SYNTHESIS_TANGENT_X], *dsource = node->in[TARN__SYNTHESIS_TANGENT_SOURCE];
  moved<T> d = {};
  if (dx && w.mix) d.queries = (const T *)dx->data, d.keys = d.queries + w.heads * w.width;
  if (dx) d.values = (const T *)dx->data + (w.mix ? 2 * w.heads * w.width : 0);
  if (dsource) d.source = (const T *)dsource->data;
  TARN__LAUNCH(synthesis_tangent_kernel<T>, blocks_of(w, tarn__tangent_directions(node->out[0], w.rows)),
               TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float), tarn__cuda_stream(exec->stream),
               (T *)node->out[0]->data, w, d);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__synthesis_node<T> w = tarn__synthesis_of<T>(node, true);
  TARN__LAUNCH(synthesis_rows_kernel<T>, dim3((unsigned)node->out[0]->rows, (unsigned)w.heads),
               TARN__SINGLE_WARPS * TARN__WARP_SIZE, tarn__single_floats(w.width) * sizeof(float),
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w,
               (const int32_t *)node->in[TARN__SYNTHESIS_LIST]->data,
               (const int32_t *)node->in[TARN__SYNTHESIS_RANGES]->data);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

static tarn_status rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(rows, node->out[0]->dtype, exec, node);
}

void tarn__cuda_synthesis_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SYNTHESIS].run = forward_node;
  kernels[TARN__OP_SYNTHESIS_TANGENT].run = tangent_node;
  kernels[TARN__OP_SYNTHESIS_ROWS].run = rows_node;
  tarn__cuda_synthesis_backward_entries(kernels);
}

// Linear layers across the tokens of sentences: one product per sentence with the part of the weight that its length
// reaches, all sentences in one launch (tile_cuda.h).
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/products/tile_cuda.h"

extern "C" {
#include "ops/token_linear.h"
}

enum { THREADS = 256, WARPS = THREADS / TARN__WARP_SIZE };

// The shape of a node, by value to kernels.
struct token_shape {
  tarn__token_attr attr;
  int64_t d, tiles;  // columns, and tiles of the rows of a sentence
};

static __device__ __forceinline__ tarn__token_sentence sentence_at(const tarn__token_attr &attr, const int32_t *offsets,
                                                                   int64_t s) {
  return tarn__token_sentence_of(&attr, s, offsets[s], offsets[s + 1] - offsets[s]);
}

// Tokens of the longest sentence, of those that are there if they are known.
static int64_t longest_of(const tarn__tensor *offsets, const tarn__token_attr *attr) {
  int64_t most = 0;
  if (!offsets->host) return attr->spec.longest;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t n = offsets->host[s + 1] - offsets->host[s];
    if (n > most) most = n;
  }
  return most;
}

static int64_t tiles_of(int64_t n) { return (n + TARN__TILE - 1) / TARN__TILE; }

// --- z = W x + b, y = gate (z + added)

template <typename T>
struct token_tensors {
  const T *x, *weight;
  const float *bias;
  const T *gate, *added;
  T *y, *z;
  int64_t weight_cols;
};

template <typename T>
static __device__ __forceinline__ void finish(const token_tensors<T> &t, int64_t at, float z) {
  if (t.added) z += tarn__get(t.added[at]);
  if (t.z) tarn__set(t.z + at, z);
  tarn__set(t.y + at, t.gate ? tarn__get(t.gate[at]) * z : z);
}

// A block has a tile of the rows of a sentence (x) and of columns (y).
template <typename T>
static __global__ void token_linear_kernel(token_tensors<T> t, const int32_t *offsets, token_shape shape) {
  TARN__SHARED(T, shared);
  const int64_t s = blockIdx.x / shape.tiles, row = blockIdx.x % shape.tiles * TARN__TILE;
  const int64_t column = (int64_t)blockIdx.y * TARN__TILE;
  const tarn__token_sentence at = sentence_at(shape.attr, offsets, s);
  if (row >= at.out) return;
  const bool causal = shape.attr.spec.causal;
  // Of causal weights, terms after the last row of the tile are 0 in all of its rows.
  const int64_t terms = causal && row + TARN__TILE < at.in ? row + TARN__TILE : at.in;
  const tarn__tile_factor<T> a = {t.weight, t.weight_cols, row,
                                  at.out,   terms,         causal ? TARN__TILE_LOWER : TARN__TILE_ALL};
  const tarn__tile_factor<T> b = {t.x + at.in_row * shape.d, shape.d, column, shape.d, terms, TARN__TILE_ALL};
  tarn__tile_sums<T> sums = {};
  tarn__tile_add<true, false>(sums, a, b, 0, shared);
  tarn__tile_each(sums, [&](int i, int j, float z) {
    if (row + i >= at.out || column + j >= shape.d) return;
    if (t.bias) z += t.bias[row + i];
    finish(t, (at.out_row + row + i) * shape.d + column + j, z);
  });
}

template <typename T>
static token_tensors<T> tensors_of(const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__TOKENS_WEIGHT], *bias = node->in[TARN__TOKENS_BIAS];
  const tarn__tensor *gate = node->in[TARN__TOKENS_GATE], *added = node->in[TARN__TOKENS_ADDED];
  const tarn__tensor *z = node->out[TARN__TOKENS_Z];
  return {(const T *)node->in[TARN__TOKENS_X]->data,
          (const T *)weight->data,
          bias ? (const float *)bias->data : nullptr,
          gate ? (const T *)gate->data : nullptr,
          added ? (const T *)added->data : nullptr,
          (T *)node->out[TARN__TOKENS_Y]->data,
          z ? (T *)z->data : nullptr,
          weight->cols};
}

template <typename T>
static tarn_status token_linear(const tarn__exec *exec, const tarn__node *node) {
  const tarn__token_attr *attr = (const tarn__token_attr *)node->attr;
  const tarn__tensor *offsets = node->in[TARN__TOKENS_OFFSETS];
  const int64_t rows = attr->spec.form == TARN__TOKENS_IN ? attr->hidden : longest_of(offsets, attr);
  const token_shape shape = {*attr, node->in[TARN__TOKENS_X]->cols, tiles_of(rows)};
  const dim3 blocks((unsigned)((offsets->cols - 1) * shape.tiles), (unsigned)tiles_of(shape.d));
  TARN__LAUNCH(token_linear_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, tarn__cuda_stream(exec->stream),
               tensors_of<T>(node), (const int32_t *)offsets->data, shape);
  return TARN_STATUS_OK;
}

static tarn_status token_linear_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(token_linear, node->in[TARN__TOKENS_X]->dtype, exec, node);
}

// --- dz = dy gate, dgate = dy z, dx (+)= W^T dz

template <typename T>
static __global__ void token_gate_kernel(T *dz, T *dgate, const T *dy, const T *gate, const T *z, int64_t n,
                                         bool accumulate) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const float d = tarn__get(dy[i]);
  if (dgate) tarn__set(dgate + i, (accumulate ? tarn__get(dgate[i]) : 0.0f) + d * tarn__get(z[i]));
  if (dz) tarn__set(dz + i, d * tarn__get(gate[i]));
}

// A block has a tile of the rows of a sentence (x) and of columns (y).
template <typename T>
static __global__ void token_linear_dx_kernel(T *dx, const T *dz, const T *weight, int64_t weight_cols,
                                              const int32_t *offsets, token_shape shape, bool accumulate) {
  TARN__SHARED(T, shared);
  const int64_t s = blockIdx.x / shape.tiles, row = blockIdx.x % shape.tiles * TARN__TILE;
  const int64_t column = (int64_t)blockIdx.y * TARN__TILE;
  const tarn__token_sentence at = sentence_at(shape.attr, offsets, s);
  if (row >= at.in) return;
  const bool causal = shape.attr.spec.causal;
  const tarn__tile_factor<T> a = {weight, weight_cols, row, at.in, at.out, causal ? TARN__TILE_UPPER : TARN__TILE_ALL};
  const tarn__tile_factor<T> b = {dz + at.out_row * shape.d, shape.d, column, shape.d, at.out, TARN__TILE_ALL};
  tarn__tile_sums<T> sums = {};
  // Of causal weights, terms before the first row of the tile are 0 in all of its rows.
  tarn__tile_add<false, false>(sums, a, b, causal ? row : 0, shared);
  tarn__tile_each(sums, [&](int i, int j, float sum) {
    if (row + i >= at.in || column + j >= shape.d) return;
    T *to = dx + (at.in_row + row + i) * shape.d + column + j;
    tarn__set(to, accumulate ? tarn__get(*to) + sum : sum);
  });
}

template <typename T>
static tarn_status dx(const tarn__exec *exec, const tarn__node *node) {
  const tarn__token_attr *attr = (const tarn__token_attr *)node->attr;
  const tarn__tensor *dy = node->in[TARN__TOKENS_DX_DY], *offsets = node->in[TARN__TOKENS_DX_OFFSETS];
  const tarn__tensor *gate = node->in[TARN__TOKENS_DX_GATE], *z = node->in[TARN__TOKENS_DX_Z];
  const tarn__tensor *dz = node->out[TARN__TOKENS_DZ], *dgate = node->out[TARN__TOKENS_DGATE];
  const tarn__tensor *weight = node->in[TARN__TOKENS_DX_WEIGHT], *out = node->out[TARN__TOKENS_DX];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const int64_t n = dy->rows * dy->cols;
  if (dz || dgate)
    TARN__LAUNCH(token_gate_kernel<T>, tarn__blocks(n, THREADS), THREADS, 0, stream, dz ? (T *)dz->data : (T *)nullptr,
                 dgate ? (T *)dgate->data : (T *)nullptr, (const T *)dy->data,
                 gate ? (const T *)gate->data : (const T *)nullptr, z ? (const T *)z->data : (const T *)nullptr, n,
                 node->in[TARN__TOKENS_DX_PREVIOUS_GATE] != NULL);
  if (!out) return TARN_STATUS_OK;
  const int64_t rows = attr->spec.form == TARN__TOKENS_OUT ? attr->hidden : longest_of(offsets, attr);
  const token_shape shape = {*attr, dy->cols, tiles_of(rows)};
  const dim3 blocks((unsigned)((offsets->cols - 1) * shape.tiles), (unsigned)tiles_of(shape.d));
  TARN__LAUNCH(token_linear_dx_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, stream, (T *)out->data,
               (const T *)(dz ? dz : dy)->data, (const T *)weight->data, weight->cols, (const int32_t *)offsets->data,
               shape, node->in[TARN__TOKENS_DX_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

static tarn_status dx_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(dx, node->in[TARN__TOKENS_DX_DY]->dtype, exec, node);
}

// --- dW += the sum over sentences of dz x^T, db += the sums of the rows of dz

// How the sums over sentences are divided, and pieces of the scratch in floats: the sums of each part [most_out,
// most_in], then those of each row of dz.
struct weight_sums {
  int64_t sentences, parts, each, most_out, most_in, rows;
};

// Enough blocks for a card, and no more than the sums of 64 parts.
static weight_sums weight_sums_of(const tarn__node *node) {
  const tarn__token_attr *attr = (const tarn__token_attr *)node->attr;
  weight_sums sums = {};
  sums.sentences = node->in[TARN__TOKENS_DWEIGHT_OFFSETS]->cols - 1;
  sums.most_out = attr->spec.form == TARN__TOKENS_IN ? attr->hidden : attr->spec.longest;
  sums.most_in = attr->spec.form == TARN__TOKENS_OUT ? attr->hidden : attr->spec.longest;
  sums.rows = node->dparam[1] ? node->in[TARN__TOKENS_DWEIGHT_DZ]->rows : 0;
  const int64_t tiles = tiles_of(sums.most_out) * tiles_of(sums.most_in);
  const int64_t wanted = tiles >= 512 ? 1 : tiles <= 8 ? 64 : 512 / tiles;
  sums.each = sums.sentences > wanted ? (sums.sentences + wanted - 1) / wanted : 1;
  sums.parts = node->dparam[0] ? (sums.sentences + sums.each - 1) / sums.each : 0;
  return sums;
}

// The sums of a part (z) of the sentences, of a tile of rows (y) and of columns (x) of the weight.
template <typename T>
static __global__ void token_linear_dweight_kernel(float *parts, const T *dz, const T *x, const int32_t *offsets,
                                                   weight_sums all, token_shape shape) {
  TARN__SHARED(T, shared);
  const int64_t row = (int64_t)blockIdx.y * TARN__TILE, column = (int64_t)blockIdx.x * TARN__TILE;
  const int64_t first = blockIdx.z * all.each;
  tarn__tile_sums<T> sums = {};
  if (!shape.attr.spec.causal || column < row + TARN__TILE)
    for (int64_t s = first; s < first + all.each && s < all.sentences; s++) {
      const tarn__token_sentence at = sentence_at(shape.attr, offsets, s);
      if (row >= at.out || column >= at.in) continue;
      const tarn__tile_factor<T> a = {dz + at.out_row * shape.d, shape.d, row, at.out, shape.d, TARN__TILE_ALL};
      const tarn__tile_factor<T> b = {x + at.in_row * shape.d, shape.d, column, at.in, shape.d, TARN__TILE_ALL};
      tarn__tile_add<true, true>(sums, a, b, 0, shared);
    }
  tarn__tile_each(sums, [&](int i, int j, float sum) {
    if (row + i >= all.most_out || column + j >= all.most_in) return;
    parts[(blockIdx.z * all.most_out + row + i) * all.most_in + column + j] = sum;
  });
}

// Adds the parts to the gradient [rows, cols], of which no sentence reaches all; one element a thread.
static __global__ void token_dweight_sum_kernel(float *grad, const float *parts, weight_sums all, int64_t rows,
                                                int64_t cols, bool causal, bool accumulate) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = at / cols, k = at % cols;
  if (i >= rows) return;
  float sum = accumulate ? grad[at] : 0.0f;
  if (i < all.most_out && k < all.most_in && (!causal || k <= i))
    for (int64_t p = 0; p < all.parts; p++) sum += parts[(p * all.most_out + i) * all.most_in + k];
  grad[at] = sum;
}

// The sum of each row of dz; one row a warp.
template <typename T>
static __global__ void token_row_sums_kernel(float *sums, const T *dz, int64_t rows, int64_t d) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t row = (int64_t)blockIdx.x * WARPS + warp;
  float sum = 0.0f;
  for (int64_t c = lane; c < d && row < rows; c += TARN__WARP_SIZE) sum += tarn__get(dz[row * d + c]);
  sum = tarn__warp_sum(sum);
  if (lane == 0 && row < rows) sums[row] = sum;
}

// Element i of the bias's gradient (one a block): the sums of row i of all sentences that have it.
static __global__ void token_dbias_kernel(float *grad, const float *sums, const int32_t *offsets, int64_t sentences,
                                          token_shape shape, bool accumulate) {
  TARN__SHARED(float, shared);
  const int64_t i = blockIdx.x;
  float sum = 0.0f;
  for (int64_t s = threadIdx.x; s < sentences; s += THREADS) {
    const tarn__token_sentence at = sentence_at(shape.attr, offsets, s);
    if (i < at.out) sum += sums[at.out_row + i];
  }
  sum = tarn__block_sum(sum, shared);
  if (threadIdx.x == 0) grad[i] = accumulate ? grad[i] + sum : sum;
}

template <typename T>
static tarn_status dweight(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__TOKENS_DWEIGHT_DZ], *x = node->in[TARN__TOKENS_DWEIGHT_X];
  const int32_t *offsets = (const int32_t *)node->in[TARN__TOKENS_DWEIGHT_OFFSETS]->data;
  const weight_sums all = weight_sums_of(node);
  const token_shape shape = {*(const tarn__token_attr *)node->attr, dz->cols, 0};
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  tarn__param *weight = node->dparam[0], *bias = node->dparam[1];
  float *parts = (float *)node->scratch, *rows = parts + all.parts * all.most_out * all.most_in;
  if (weight) {
    const dim3 blocks((unsigned)tiles_of(all.most_in), (unsigned)tiles_of(all.most_out), (unsigned)all.parts);
    TARN__LAUNCH(token_linear_dweight_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, stream, parts,
                 (const T *)dz->data, (const T *)x->data, offsets, all, shape);
    TARN__LAUNCH(token_dweight_sum_kernel, tarn__blocks(weight->rows * weight->cols, THREADS), THREADS, 0, stream,
                 (float *)weight->training.grad, (const float *)parts, all, weight->rows, weight->cols,
                 shape.attr.spec.causal != 0, tarn__param_accumulate(weight) != 0);
  }
  if (bias) {
    TARN__LAUNCH(token_row_sums_kernel<T>, tarn__blocks(all.rows, WARPS), THREADS, 0, stream, rows, (const T *)dz->data,
                 all.rows, dz->cols);
    TARN__LAUNCH(token_dbias_kernel, (unsigned)bias->cols, THREADS, TARN__WARP_SIZE * sizeof(float), stream,
                 (float *)bias->training.grad, (const float *)rows, offsets, all.sentences, shape,
                 tarn__param_accumulate(bias) != 0);
  }
  return TARN_STATUS_OK;
}

static tarn_status dweight_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(dweight, node->in[TARN__TOKENS_DWEIGHT_DZ]->dtype, exec, node);
}

static size_t dweight_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const weight_sums all = weight_sums_of(node);
  return (size_t)(all.parts * all.most_out * all.most_in + all.rows) * sizeof(float);
}

// --- single rows

// A block has a row (x) and as many of its columns as threads (y). Weights and numbers of rows pass through shared
// memory, as many as threads at a time.
template <typename T>
static __global__ void token_linear_rows_kernel(token_tensors<T> t, const int32_t *list, const int32_t *ranges,
                                                int64_t x_cols, int64_t column, int64_t d) {
  TARN__SHARED(float, shared);
  int32_t *rows = (int32_t *)(shared + THREADS);
  const int64_t r = blockIdx.x, c = (int64_t)blockIdx.y * THREADS + threadIdx.x;
  const int64_t first = ranges[2 * r], count = ranges[2 * r + 1] - first;
  float z = 0.0f;
  for (int64_t start = 0; start < count; start += THREADS) {
    const int64_t k = start + threadIdx.x;
    if (k < count) {
      shared[threadIdx.x] = tarn__get(t.weight[(count - 1) * t.weight_cols + k]);
      rows[threadIdx.x] = list[first + k];
    }
    __syncthreads();
    const int here = (int)(count - start < THREADS ? count - start : (int64_t)THREADS);
    for (int i = 0; i < here && c < d; i++) z = fmaf(shared[i], tarn__get(t.x[rows[i] * x_cols + column + c]), z);
    __syncthreads();
  }
  if (c >= d) return;
  finish(t, r * d + c, t.bias ? z + t.bias[count - 1] : z);
}

template <typename T>
static tarn_status rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[TARN__TOKENS_Y], *x = node->in[TARN__TOKENS_X];
  const dim3 blocks((unsigned)y->rows, tarn__blocks(y->cols, THREADS));
  TARN__LAUNCH(token_linear_rows_kernel<T>, blocks, THREADS, THREADS * (sizeof(float) + sizeof(int32_t)),
               tarn__cuda_stream(exec->stream), tensors_of<T>(node), (const int32_t *)node->in[TARN__TOKENS_ROWS]->data,
               (const int32_t *)node->in[TARN__TOKENS_RANGES]->data, x->cols,
               ((const tarn__token_attr *)node->attr)->column, y->cols);
  return TARN_STATUS_OK;
}

static tarn_status rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(rows, node->out[TARN__TOKENS_Y]->dtype, exec, node);
}

// --- dy = gate (dz + dadded) + dgate z, for as many directions as there are blocks of `size` elements

template <typename T>
static __global__ void token_tangent_kernel(T *dy, const T *dz, const T *dadded, const T *gate, const T *dgate,
                                            const T *z, int64_t size, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float sum = (dz ? tarn__get(dz[i]) : 0.0f) + (dadded ? tarn__get(dadded[i]) : 0.0f);
  sum *= tarn__get(gate[i % size]);
  if (dgate) sum = fmaf(tarn__get(dgate[i]), tarn__get(z[i % size]), sum);
  tarn__set(dy + i, sum);
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const auto data = [&](int input) { return node->in[input] ? (const T *)node->in[input]->data : (const T *)nullptr; };
  const tarn__tensor *gate = node->in[TARN__TOKENS_TANGENT_GATE], *dy = node->out[0];
  const int64_t n = dy->rows * gate->cols;
  TARN__LAUNCH(token_tangent_kernel<T>, tarn__blocks(n, THREADS), THREADS, 0, tarn__cuda_stream(exec->stream),
               (T *)dy->data, data(TARN__TOKENS_TANGENT_DZ), data(TARN__TOKENS_TANGENT_DADDED), (const T *)gate->data,
               data(TARN__TOKENS_TANGENT_DGATE), data(TARN__TOKENS_TANGENT_Z), gate->rows * gate->cols, n);
  return TARN_STATUS_OK;
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

void tarn__cuda_token_linear_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_TOKEN_LINEAR].run = token_linear_node;
  kernels[TARN__OP_TOKEN_LINEAR_DX].run = dx_node;
  kernels[TARN__OP_TOKEN_LINEAR_DWEIGHT] = {dweight_node, dweight_scratch};
  kernels[TARN__OP_TOKEN_LINEAR_ROWS].run = rows_node;
  kernels[TARN__OP_TOKEN_LINEAR_TANGENT].run = tangent_node;
}

// Features of linear attention: element by element, or the product of a tile of rows with random features.
#include "device/cuda/mixing/columns.h"
#include "device/cuda/mixing/tile_product.h"

extern "C" {
#include "graph/tangents.h"
#include "ops/feature_map.h"
}

// Sizes and pointers of all passes. `rows`: of x.
template <typename T>
struct map {
  const T *x, *w;
  int64_t rows, cols, heads, width, features, query_column, key_column;
  float scale;
};

template <typename T>
static map<T> map_of(const tarn__node *node) {
  const tarn__feature_map_spec *spec = (const tarn__feature_map_spec *)node->attr;
  const tarn__tensor *x = node->in[TARN__FEATURE_MAP_X], *w = node->in[TARN__FEATURE_MAP_PROJECTION];
  return {(const T *)x->data,
          w ? (const T *)w->data : (const T *)nullptr,
          x->rows,
          x->cols,
          spec->heads,
          spec->width,
          spec->features,
          spec->query_column,
          spec->key_column,
          (float)(1.0 / sqrt(sqrt((double)spec->width)))};
}

// First column of head h in x; heads from m.heads on are those of keys.
template <typename T>
static __device__ __forceinline__ int64_t column_of(const map<T> &m, int64_t h) {
  return h < m.heads ? m.query_column + h * m.width : m.key_column + (h - m.heads) * m.width;
}

// --- ELU + 1: a block has a row

template <typename T>
static __global__ void elu_kernel(T *phi, map<T> m) {
  const int64_t r = blockIdx.x, n = 2 * m.heads * m.width;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float x = tarn__get(m.x[r * m.cols + column_of(m, i / m.width) + i % m.width]);
    tarn__set(phi + r * n + i, x > 0.0f ? x + 1.0f : expf(x));
  }
}

template <typename T>
static __global__ void elu_backward_kernel(T *dx, const T *dphi, const T *phi, map<T> m) {
  const int64_t r = blockIdx.x, n = 2 * m.heads * m.width;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float p = tarn__get(phi[r * n + i]);
    T *to = dx + r * m.cols + column_of(m, i / m.width) + i % m.width;
    tarn__set(to, tarn__get(*to) + tarn__get(dphi[r * n + i]) * (p > 1.0f ? 1.0f : p));
  }
}

template <typename T>
static __global__ void elu_tangent_kernel(T *dphi, const T *dx, const T *phi, map<T> m) {
  const int64_t row = blockIdx.x, r = row % m.rows, n = 2 * m.heads * m.width;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float p = tarn__get(phi[r * n + i]);
    const float moved = tarn__get(dx[row * m.cols + column_of(m, i / m.width) + i % m.width]);
    tarn__set(dphi + row * n + i, moved * (p > 1.0f ? 1.0f : p));
  }
}

// --- exponents of softmax features: a block has a tile of rows and features, or columns, of a head

// Sums over the terms of each row of a tile, in to[64]; term(row, i) of rows below `rows`.
template <typename F>
static __device__ __forceinline__ void row_sums(float *to, const F &term, int64_t first, int64_t rows, int64_t terms) {
  const int row = (int)threadIdx.x / 4, part = (int)threadIdx.x % 4;
  float sum = 0.0f;
  for (int64_t i = part; i < terms && first + row < rows; i += 4) sum += term(first + row, i);
  sum += __shfl_xor_sync(TARN__WARP, sum, 1);
  sum += __shfl_xor_sync(TARN__WARP, sum, 2);
  if (part == 0) to[row] = sum;
  __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(TARN__TILE_SIDE_THREADS) exponents_kernel(float *phi, map<T> m) {
  TARN__SHARED(float, shared);
  float *squares = shared + TARN__TILE_FLOATS, sums[4][4];
  const int64_t first = (int64_t)blockIdx.x * TARN__TILE_SIDE, feature = (int64_t)blockIdx.y * TARN__TILE_SIDE,
                h = blockIdx.z;
  const T *x = m.x + column_of(m, h);
  const auto scaled = [&](int64_t r, int64_t c) { return m.scale * tarn__get(x[r * m.cols + c]); };
  tarn__tile_product<true, true>(
      sums, scaled, [&](int64_t f, int64_t c) { return tarn__get(m.w[f * m.width + c]); }, first, m.rows, feature,
      m.features, m.width, shared);
  row_sums(
      squares, [&](int64_t r, int64_t c) { return scaled(r, c) * scaled(r, c); }, first, m.rows, m.width);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int64_t r = first + tarn__tile_row(i), f = feature + tarn__tile_column(j);
      if (r >= m.rows || f >= m.features) continue;
      const float square = h < m.heads ? 0.0f : squares[tarn__tile_row(i)];
      phi[r * 2 * m.heads * m.features + h * m.features + f] = sums[i][j] - square / 2.0f;
    }
}

template <typename T>
static __global__ void __launch_bounds__(TARN__TILE_SIDE_THREADS)
    exponents_backward_kernel(T *dx, const float *dphi, map<T> m) {
  TARN__SHARED(float, shared);
  float *totals = shared + TARN__TILE_FLOATS, sums[4][4];
  const int64_t first = (int64_t)blockIdx.x * TARN__TILE_SIDE, column = (int64_t)blockIdx.y * TARN__TILE_SIDE,
                h = blockIdx.z;
  const int64_t at = column_of(m, h), step = 2 * m.heads * m.features;
  const auto gradient = [&](int64_t r, int64_t f) { return dphi[r * step + h * m.features + f]; };
  tarn__tile_product<true, false>(
      sums, gradient, [&](int64_t c, int64_t f) { return tarn__get(m.w[f * m.width + c]); }, first, m.rows, column,
      m.width, m.features, shared);
  row_sums(totals, gradient, first, m.rows, m.features);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int64_t r = first + tarn__tile_row(i), c = column + tarn__tile_column(j), to = r * m.cols + at + c;
      if (r >= m.rows || c >= m.width) continue;
      const float u = h < m.heads ? 0.0f : m.scale * tarn__get(m.x[to]);
      tarn__set(dx + to, tarn__get(dx[to]) + m.scale * (sums[i][j] - u * totals[tarn__tile_row(i)]));
    }
}

template <typename T>
static __global__ void __launch_bounds__(TARN__TILE_SIDE_THREADS)
    exponents_tangent_kernel(float *dphi, const T *dx, map<T> m, int64_t rows) {
  TARN__SHARED(float, shared);
  float *dots = shared + TARN__TILE_FLOATS, sums[4][4];
  const int64_t first = (int64_t)blockIdx.x * TARN__TILE_SIDE, feature = (int64_t)blockIdx.y * TARN__TILE_SIDE,
                h = blockIdx.z;
  const int64_t at = column_of(m, h);
  const auto moved = [&](int64_t row, int64_t c) { return m.scale * tarn__get(dx[row * m.cols + at + c]); };
  const auto own = [&](int64_t row, int64_t c) { return m.scale * tarn__get(m.x[row % m.rows * m.cols + at + c]); };
  tarn__tile_product<true, true>(
      sums, moved, [&](int64_t f, int64_t c) { return tarn__get(m.w[f * m.width + c]); }, first, rows, feature,
      m.features, m.width, shared);
  row_sums(
      dots, [&](int64_t row, int64_t c) { return moved(row, c) * own(row, c); }, first, rows, m.width);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int64_t row = first + tarn__tile_row(i), f = feature + tarn__tile_column(j);
      if (row >= rows || f >= m.features) continue;
      const float dot = h < m.heads ? 0.0f : dots[tarn__tile_row(i)];
      dphi[row * 2 * m.heads * m.features + h * m.features + f] = sums[i][j] - dot;
    }
}

static const size_t SHARED = (TARN__TILE_FLOATS + TARN__TILE_SIDE) * sizeof(float);

// Blocks for tiles of `rows` rows and `columns` columns of every head of queries and keys.
template <typename T>
static dim3 tiles_of(const map<T> &m, int64_t rows, int64_t columns) {
  return dim3(tarn__blocks(rows, TARN__TILE_SIDE), tarn__blocks(columns, TARN__TILE_SIDE), (unsigned)(2 * m.heads));
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const map<T> m = map_of<T>(node);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  void *phi = node->out[0]->data;
  if (m.w)
    TARN__LAUNCH(exponents_kernel<T>, tiles_of(m, m.rows, m.features), TARN__TILE_SIDE_THREADS, SHARED, stream,
                 (float *)phi, m);
  else
    TARN__LAUNCH(elu_kernel<T>, (unsigned)m.rows, tarn__row_threads(2 * m.heads * m.width), 0, stream, (T *)phi, m);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const map<T> m = map_of<T>(node);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const void *phi = node->in[TARN__FEATURE_MAP_PHI]->data, *dphi = node->in[TARN__FEATURE_MAP_DPHI]->data;
  T *dx = (T *)node->out[0]->data;
  if (!node->in[TARN__FEATURE_MAP_PREVIOUS])
    TARN__CUDA(cudaMemsetAsync(dx, 0, (size_t)(m.rows * m.cols) * sizeof(T), stream), "clearing a gradient");
  if (m.w)
    TARN__LAUNCH(exponents_backward_kernel<T>, tiles_of(m, m.rows, m.width), TARN__TILE_SIDE_THREADS, SHARED, stream,
                 dx, (const float *)dphi, m);
  else
    TARN__LAUNCH(elu_backward_kernel<T>, (unsigned)m.rows, tarn__row_threads(2 * m.heads * m.width), 0, stream, dx,
                 (const T *)dphi, (const T *)phi, m);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const map<T> m = map_of<T>(node);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *dx = node->in[TARN__FEATURE_MAP_DX];
  const void *phi = node->in[TARN__FEATURE_MAP_PHI]->data;
  void *dphi = node->out[0]->data;
  if (m.w)
    TARN__LAUNCH(exponents_tangent_kernel<T>, tiles_of(m, dx->rows, m.features), TARN__TILE_SIDE_THREADS, SHARED,
                 stream, (float *)dphi, (const T *)dx->data, m, dx->rows);
  else
    TARN__LAUNCH(elu_tangent_kernel<T>, (unsigned)dx->rows, tarn__row_threads(2 * m.heads * m.width), 0, stream,
                 (T *)dphi, (const T *)dx->data, (const T *)phi, m);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->in[TARN__FEATURE_MAP_X]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__FEATURE_MAP_X]->dtype, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

void tarn__cuda_feature_map_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_FEATURE_MAP].run = forward_node;
  kernels[TARN__OP_FEATURE_MAP_BACKWARD].run = backward_node;
  kernels[TARN__OP_FEATURE_MAP_TANGENT].run = tangent_node;
}

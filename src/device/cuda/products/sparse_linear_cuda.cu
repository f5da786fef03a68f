// Products with a frozen weight in CSR format. Every element is summed by one warp in a fixed order.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "graph/entries.h"
#include "ops/sparse_linear.h"
}

// ROWS: rows of x that share the entries which a warp reads. SHARED_MOST: floats of shared memory to hold them in.
enum { ROWS = 4, THREADS = 256, WARPS = THREADS / TARN__WARP_SIZE, SHARED_MOST = 48 << 10 };

struct csr {
  const int32_t *starts, *columns;
  const float *values;
  int64_t rows, cols;
};

// y [R, n] = x W^T, with the entries of rows of W as terms: a block has 4 rows of x, in shared memory as [k][4] if IN
// is set, and 256 rows of W, of which each warp has 32. Lanes take the entries of a row in turns.
template <typename T, bool IN>
static __global__ void sparse_linear_kernel(T *y, const T *x, csr w, int64_t rows, bool accumulate) {
  TARN__SHARED(float4, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t row = (int64_t)blockIdx.x * ROWS, first = ((int64_t)blockIdx.y * WARPS + warp) * TARN__WARP_SIZE;
  const auto column_of = [&](int64_t c) {
    float at[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) at[r] = row + r < rows ? tarn__get(x[(row + r) * w.cols + c]) : 0.0f;
    return make_float4(at[0], at[1], at[2], at[3]);
  };
  if (IN) {
    for (int64_t c = threadIdx.x; c < w.cols; c += THREADS) shared[c] = column_of(c);
    __syncthreads();
  }
  float kept[ROWS] = {};
  for (int64_t i = first; i < first + TARN__WARP_SIZE && i < w.rows; i++) {
    float sum[ROWS] = {};
    for (int32_t e = w.starts[i] + lane; e < w.starts[i + 1]; e += TARN__WARP_SIZE) {
      const float value = w.values[e];
      const float4 terms = IN ? shared[w.columns[e]] : column_of(w.columns[e]);
      sum[0] = fmaf(value, terms.x, sum[0]);
      sum[1] = fmaf(value, terms.y, sum[1]);
      sum[2] = fmaf(value, terms.z, sum[2]);
      sum[3] = fmaf(value, terms.w, sum[3]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      sum[r] = tarn__warp_sum(sum[r]);
      if (lane == i - first) kept[r] = sum[r];
    }
  }
  const int64_t i = first + lane;
  for (int r = 0; r < ROWS && i < w.rows && row + r < rows; r++) {
    T *to = y + (row + r) * w.rows + i;
    tarn__set(to, accumulate ? tarn__get(*to) + kept[r] : kept[r]);
  }
}

// y [R, k] = x W: a warp has a row and `width` of its columns, whose sums lie in shared memory. It adds the rows of W
// in their order; the entries of one row are of different columns.
template <typename T>
static __global__ void sparse_transposed_kernel(T *y, const T *x, csr w, int64_t rows, int64_t width, bool accumulate) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t row = (int64_t)blockIdx.x * (blockDim.x / TARN__WARP_SIZE) + warp, first = blockIdx.y * width;
  const int64_t here = w.cols - first < width ? w.cols - first : width;
  float *sums = shared + warp * width;
  if (row >= rows) return;  // whole warps, and there are no barriers of the block
  for (int64_t c = lane; c < here; c += TARN__WARP_SIZE)
    sums[c] = accumulate ? tarn__get(y[row * w.cols + first + c]) : 0.0f;
  __syncwarp();
  for (int64_t i = 0; i < w.rows; i++) {
    const float factor = tarn__get(x[row * w.rows + i]);
    for (int32_t e = w.starts[i] + lane; e < w.starts[i + 1]; e += TARN__WARP_SIZE) {
      const int64_t c = w.columns[e] - first;
      if (c >= 0 && c < here) sums[c] = fmaf(w.values[e], factor, sums[c]);
    }
    __syncwarp();
  }
  for (int64_t c = lane; c < here; c += TARN__WARP_SIZE) tarn__set(y + row * w.cols + first + c, sums[c]);
}

template <typename T>
static tarn_status forward(const tarn__node *node, const csr &w, cudaStream_t stream) {
  const tarn__tensor *x = node->in[TARN__SPARSE_LINEAR_X];
  const dim3 blocks(tarn__blocks(x->rows, ROWS), tarn__blocks(w.rows, THREADS));
  const bool in = w.cols * ROWS <= SHARED_MOST, accumulate = node->in[TARN__SPARSE_LINEAR_PREVIOUS] != NULL;
  if (in)
    TARN__LAUNCH((sparse_linear_kernel<T, true>), blocks, THREADS, (size_t)w.cols * sizeof(float4), stream,
                 (T *)node->out[0]->data, (const T *)x->data, w, x->rows, accumulate);
  else
    TARN__LAUNCH((sparse_linear_kernel<T, false>), blocks, THREADS, 0, stream, (T *)node->out[0]->data,
                 (const T *)x->data, w, x->rows, accumulate);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status transposed(const tarn__node *node, const csr &w, cudaStream_t stream) {
  const tarn__tensor *x = node->in[TARN__SPARSE_LINEAR_X];
  const int64_t width = w.cols < SHARED_MOST ? w.cols : (int64_t)SHARED_MOST;
  // As many warps as there is room for, at most 8.
  const int64_t fit = SHARED_MOST / (width > 0 ? width : 1), warps = fit > WARPS ? (int64_t)WARPS : fit;
  const dim3 blocks(tarn__blocks(x->rows, warps), tarn__blocks(w.cols, width > 0 ? width : 1));
  TARN__LAUNCH(sparse_transposed_kernel<T>, blocks, (unsigned)(warps * TARN__WARP_SIZE),
               (size_t)(warps * width) * sizeof(float), stream, (T *)node->out[0]->data, (const T *)x->data, w, x->rows,
               width, node->in[TARN__SPARSE_LINEAR_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status sparse_linear(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__SPARSE_LINEAR_WEIGHT];
  const tarn__entries entries = tarn__entries_at(weight->param, weight->data);
  const csr w = {entries.starts, entries.columns, (const float *)entries.values, weight->rows, weight->cols};
  const bool transpose = ((const tarn__sparse_linear_attr *)node->attr)->transpose;
  return (transpose ? transposed<T> : forward<T>)(node, w, tarn__cuda_stream(exec->stream));
}

static tarn_status sparse_linear_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(sparse_linear, node->out[0]->dtype, exec, node);
}

void tarn__cuda_sparse_linear_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SPARSE_LINEAR].run = sparse_linear_node;
}

// A gated convolution of width 3; each thread has a column of a row.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "graph/tangents.h"
#include "ops/gated_conv.h"
}

template <typename T>
struct view {
  const T *x, *u, *v;
  const float *kernel;
  const int32_t *offset;
  int64_t rows, cols, sentences;
};

// The inputs of all passes, which are in one order.
template <typename T>
static view<T> view_of(tarn__tensor *const *in) {
  return {(const T *)in[TARN__GC_X]->data,
          (const T *)in[TARN__GC_U]->data,
          (const T *)in[TARN__GC_V]->data,
          (const float *)in[TARN__GC_KERNEL]->data,
          (const int32_t *)in[TARN__GC_OFFSETS]->data,
          in[TARN__GC_X]->rows,
          in[TARN__GC_X]->cols,
          in[TARN__GC_OFFSETS]->cols - 1};
}

template <typename T>
static __device__ __forceinline__ float gate_of(const view<T> &w, int64_t at) {
  return 1.0f / (1.0f + expf(-(tarn__get(w.u[at]) + tarn__get(w.v[at]))));
}

// The convolution of x at row t of a sentence of rows [first, end).
template <typename T>
static __device__ __forceinline__ float conv_of(const view<T> &w, const T *x, int64_t t, int64_t c, int64_t first,
                                                int64_t end) {
  float sum = 0.0f;
  for (int64_t j = -1; j <= 1; j++)
    if (t + j >= first && t + j < end) sum += w.kernel[(j + 1) * w.cols + c] * tarn__get(x[(t + j) * w.cols + c]);
  return sum;
}

template <typename T>
static __global__ void gated_conv_kernel(T *y, view<T> w) {
  const int64_t t = blockIdx.x, s = tarn__sentence_of(w.offset, w.sentences, t);
  for (int64_t c = threadIdx.x; c < w.cols; c += blockDim.x)
    tarn__set(y + t * w.cols + c, gate_of(w, t * w.cols + c) * conv_of(w, w.x, t, c, w.offset[s], w.offset[s + 1]));
}

// A gradient that is not wanted is NULL.
template <typename T>
static __global__ void gated_conv_backward_kernel(T *dx, T *du, T *dv, const T *dy, view<T> w) {
  const int64_t t = blockIdx.x, s = tarn__sentence_of(w.offset, w.sentences, t);
  const int64_t first = w.offset[s], end = w.offset[s + 1];
  for (int64_t c = threadIdx.x; c < w.cols; c += blockDim.x) {
    const int64_t at = t * w.cols + c;
    if (du || dv) {
      const float gate = gate_of(w, at);
      const float d = tarn__get(dy[at]) * conv_of(w, w.x, t, c, first, end) * gate * (1.0f - gate);
      if (du) tarn__set(du + at, d);
      if (dv) tarn__set(dv + at, d);
    }
    if (!dx) continue;
    float sum = 0.0f;
    for (int64_t j = 1; j >= -1; j--) {  // row t is row j of the convolution of row t - j
      const int64_t from = at - j * w.cols;
      if (t - j >= first && t - j < end) sum += tarn__get(dy[from]) * gate_of(w, from) * w.kernel[(j + 1) * w.cols + c];
    }
    tarn__set(dx + at, sum);
  }
}

// The gradient of the kernel from a slice of the rows: sums [slices, 3, cols]. Each warp has every eighth row.
template <typename T>
static __global__ void gated_conv_dkernel_kernel(float *sums, const T *dy, view<T> w, int64_t each) {
  enum { WARPS = 8 };
  TARN__SHARED(float, of_warps);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t c = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane, begin = blockIdx.y * each;
  const int64_t last = begin + each < w.rows ? begin + each : w.rows;
  float sum[3] = {};
  for (int64_t t = begin + warp; t < last && c < w.cols; t += WARPS) {
    const int64_t s = tarn__sentence_of(w.offset, w.sentences, t), at = t * w.cols + c;
    const float d = tarn__get(dy[at]) * gate_of(w, at);
    for (int j = 0; j < 3; j++)
      if (t + j - 1 >= w.offset[s] && t + j - 1 < w.offset[s + 1]) sum[j] += d * tarn__get(w.x[at + (j - 1) * w.cols]);
  }
  for (int j = 0; j < 3; j++) of_warps[(warp * 3 + j) * TARN__WARP_SIZE + lane] = sum[j];
  __syncthreads();
  if (warp > 0 || c >= w.cols) return;
  for (int j = 0; j < 3; j++) {
    for (int k = 1; k < WARPS; k++) sum[j] += of_warps[(k * 3 + j) * TARN__WARP_SIZE + lane];
    sums[((int64_t)blockIdx.y * 3 + j) * w.cols + c] = sum[j];
  }
}

// One row of one direction; a tangent is NULL if zero.
template <typename T>
static __global__ void gated_conv_tangent_kernel(T *dy, const T *dx, const T *du, const T *dv, view<T> w) {
  const int64_t row = blockIdx.x, t = row % w.rows, block = (row - t) * w.cols;
  const int64_t s = tarn__sentence_of(w.offset, w.sentences, t), first = w.offset[s], end = w.offset[s + 1];
  for (int64_t c = threadIdx.x; c < w.cols; c += blockDim.x) {
    const int64_t at = row * w.cols + c;
    const float gate = gate_of(w, t * w.cols + c);
    const float moved = (du ? tarn__get(du[at]) : 0.0f) + (dv ? tarn__get(dv[at]) : 0.0f);
    float d = gate * (1.0f - gate) * moved * conv_of(w, w.x, t, c, first, end);
    if (dx) d += gate * conv_of(w, dx + block, t, c, first, end);
    tarn__set(dy + at, d);
  }
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const view<T> w = view_of<T>(node->in);
  TARN__LAUNCH(gated_conv_kernel<T>, (unsigned)w.rows, tarn__row_threads(w.cols), 0, tarn__cuda_stream(exec->stream),
               (T *)node->out[0]->data, w);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const view<T> w = view_of<T>(node->in + 1);
  const T *dy = (const T *)node->in[TARN__GC_DY]->data;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  T *d[3];
  for (int i = 0; i < 3; i++) d[i] = node->out[i] ? (T *)node->out[i]->data : (T *)nullptr;
  if (d[0] || d[1] || d[2])
    TARN__LAUNCH(gated_conv_backward_kernel<T>, (unsigned)w.rows, tarn__row_threads(w.cols), 0, stream, d[TARN__GC_DX],
                 d[TARN__GC_DU], d[TARN__GC_DV], dy, w);
  tarn__param *kernel = node->dparam[0];
  if (!kernel) return TARN_STATUS_OK;
  const bool add = tarn__param_accumulate(kernel) != 0;
  const int64_t slices = tarn__part_count(w.rows);
  float *sums = (float *)node->scratch;
  TARN__LAUNCH(gated_conv_dkernel_kernel<T>, dim3(tarn__blocks(w.cols, TARN__WARP_SIZE), (unsigned)slices), 256,
               3 * 256 * sizeof(float), stream, sums, dy, w, tarn__part_rows(w.rows));
  return tarn__cuda_sum_parts((float *)kernel->training.grad, sums, slices, 3 * w.cols, add, stream);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *x = node->in[TARN__GC_SAVED_X];
  return node->dparam[0] ? (size_t)(tarn__part_count(x->rows) * 3 * x->cols) * sizeof(float) : 0;
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const view<T> w = view_of<T>(node->in);
  const tarn__tensor *dy = node->out[0];
  const T *d[3];
  for (int i = 0; i < 3; i++) {
    const tarn__tensor *moved = node->in[TARN__GC_TANGENTS + i];
    d[i] = moved ? (const T *)moved->data : (const T *)nullptr;
  }
  TARN__LAUNCH(gated_conv_tangent_kernel<T>, (unsigned)dy->rows, tarn__row_threads(w.cols), 0,
               tarn__cuda_stream(exec->stream), (T *)dy->data, d[0], d[1], d[2], w);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__GC_DY]->dtype, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

void tarn__cuda_gated_conv_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_GATED_CONV].run = forward_node;
  kernels[TARN__OP_GATED_CONV_BACKWARD].run = backward_node;
  kernels[TARN__OP_GATED_CONV_BACKWARD].scratch = backward_scratch;
  kernels[TARN__OP_GATED_CONV_TANGENT].run = tangent_node;
}

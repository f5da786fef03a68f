// The ops activation and activation_tangent, and the columns of a product's gradient: linear_dz.
#include "device/cuda/column_sums.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/products/activation_cuda.h"
#include "device/cuda/products/activation_op_cuda.h"
#include "device/cuda/products/vector_cuda.h"

extern "C" {
#include "ops/linear.h"
}

enum { THREADS = 256, WARPS = THREADS / TARN__WARP_SIZE };

// --- y = act(x)

template <typename T, int N>
static __global__ void activation_kernel(T *y, const T *x, int64_t n, tarn__activation form) {
  const int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
  if (at >= n) return;
  float values[N];
  tarn__read<N>(values, x + at);
  tarn__by_activation(form, [&](auto as) {
#pragma unroll
    for (int i = 0; i < N; i++) values[i] = as.value(values[i]);
  });
  tarn__write<N>(y + at, values);
}

template <typename T>
tarn_status tarn__cuda_activate(T *y, const T *x, int64_t n, tarn__activation form, cudaStream_t stream) {
  constexpr int N = TARN__WIDE<T>;
  if (tarn__wide_rows<T>(n, y, x))
    TARN__LAUNCH((activation_kernel<T, N>), tarn__blocks(n, THREADS * N), THREADS, 0, stream, y, x, n, form);
  else
    TARN__LAUNCH((activation_kernel<T, 1>), tarn__blocks(n, THREADS), THREADS, 0, stream, y, x, n, form);
  return TARN_STATUS_OK;
}
template tarn_status tarn__cuda_activate(float *, const float *, int64_t, tarn__activation, cudaStream_t);
template tarn_status tarn__cuda_activate(tarn__bf16 *, const tarn__bf16 *, int64_t, tarn__activation, cudaStream_t);

template <typename T>
static tarn_status activation(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0];
  return tarn__cuda_activate((T *)node->out[0]->data, (const T *)x->data, x->rows * x->cols,
                             *(const tarn__activation *)node->attr, tarn__cuda_stream(exec->stream));
}

static tarn_status activation_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(activation, node->in[0]->dtype, exec, node);
}

// --- dy = act'(saved) dx, for as many directions as dx has blocks of `size` elements

template <typename T>
static __global__ void activation_tangent_kernel(T *dy, const T *dx, const T *saved, int64_t size, int64_t directions,
                                                 tarn__activation form) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= size) return;
  float slope = 1.0f;
  tarn__by_activation(form, [&](auto as) { slope = as.slope(tarn__get(saved[i])); });
  for (int64_t k = i; k < directions * size; k += size) tarn__set(dy + k, tarn__get(dx[k]) * slope);
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->in[TARN__ACTIVATION_DX], *saved = node->in[TARN__ACTIVATION_SAVED];
  const int64_t size = saved->rows * saved->cols;
  if (size == 0) return TARN_STATUS_OK;
  TARN__LAUNCH(activation_tangent_kernel<T>, tarn__blocks(size, THREADS), THREADS, 0, tarn__cuda_stream(exec->stream),
               (T *)node->out[0]->data, (const T *)dx->data, (const T *)saved->data, size, dx->rows * dx->cols / size,
               *(const tarn__activation *)node->attr);
  return TARN_STATUS_OK;
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

// --- dz = dy act'(saved) in place, and the sums of its columns, in one pass over dz

// A lane has N columns, a warp every eighth row of a part.
template <typename T, int N>
static __global__ void linear_dz_kernel(T *dz, const T *saved, float *parts, int64_t rows, int64_t cols,
                                        int64_t part_rows, tarn__activation form) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t column = ((int64_t)blockIdx.x * TARN__WARP_SIZE + lane) * N, first = blockIdx.y * part_rows;
  const int64_t last = first + part_rows < rows ? first + part_rows : rows;
  float sum[N] = {};
  tarn__by_activation(form, [&](auto as) {
    for (int64_t r = first + warp; r < last && column < cols; r += WARPS) {
      float d[N], z[N];
      tarn__read<N>(d, dz + r * cols + column);
      if (saved) {
        tarn__read<N>(z, saved + r * cols + column);
#pragma unroll
        for (int i = 0; i < N; i++) d[i] = tarn__rounded<T>(d[i] * as.slope(z[i]));
        tarn__write<N>(dz + r * cols + column, d);
      }
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += d[i];
    }
  });
  if (parts) tarn__part_store<N>(parts + blockIdx.y * cols, sum, column, cols, shared);
}

template <typename T, int N>
static tarn_status dz_of(const tarn__tensor *dy, const T *saved, tarn__activation form, float *parts,
                         cudaStream_t stream) {
  const dim3 blocks(tarn__blocks(dy->cols, TARN__WARP_SIZE * N), (unsigned)tarn__part_count(dy->rows));
  TARN__LAUNCH((linear_dz_kernel<T, N>), blocks, THREADS, parts ? THREADS * N * sizeof(float) : 0, stream,
               (T *)dy->data, saved, parts, dy->rows, dy->cols, tarn__part_rows(dy->rows), form);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status through_activation(const tarn__tensor *dy, const tarn__tensor *saved, tarn__activation form,
                                      tarn__param *bias, float *parts, cudaStream_t stream) {
  const T *from = form == TARN__IDENTITY ? nullptr : (const T *)saved->data;
  const bool wide = tarn__wide_rows<T>(dy->cols, dy->data, from);
  TARN_TRY((wide ? dz_of<T, TARN__WIDE<T>> : dz_of<T, 1>)(dy, from, form, bias ? parts : nullptr, stream));
  if (!bias) return TARN_STATUS_OK;
  return tarn__cuda_sum_parts((float *)bias->training.grad, parts, tarn__part_count(dy->rows), dy->cols,
                              tarn__param_accumulate(bias) != 0, stream);
}

tarn_status tarn__cuda_through_activation(const tarn__tensor *dy, const tarn__tensor *saved, tarn__activation form,
                                          tarn__param *bias, void *scratch, cudaStream_t stream) {
  return TARN__BY_DTYPE(through_activation, dy->dtype, dy, saved, form, bias, (float *)scratch, stream);
}

size_t tarn__cuda_bias_scratch(const tarn__tensor *dy, const tarn__param *bias) {
  return bias ? (size_t)(tarn__part_count(dy->rows) * dy->cols) * sizeof(float) : 0;
}

static tarn_status dz_node(const tarn__exec *exec, const tarn__node *node) {
  return tarn__cuda_through_activation(node->in[0], node->in[1], ((const tarn__linear_attr *)node->attr)->activation,
                                       node->dparam[0], node->scratch, tarn__cuda_stream(exec->stream));
}

static size_t dz_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__cuda_bias_scratch(node->in[0], node->dparam[0]);
}

void tarn__cuda_activation_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ACTIVATION].run = activation_node;
  kernels[TARN__OP_ACTIVATION_TANGENT].run = tangent_node;
  kernels[TARN__OP_LINEAR_DZ] = {dz_node, dz_scratch};
}

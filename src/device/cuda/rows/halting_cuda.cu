// Halting of adaptive computation time: a thread a row.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/halting.h"
}

static __device__ __forceinline__ double number_of(const float *values, int64_t i) {
  return values ? (double)values[i] : 0.0;
}

template <typename T>
static __global__ void halting_kernel(float *weight, float *sum, float *runs, float *rests, const T *z,
                                      const float *before, int64_t rows, tarn__halting_spec spec) {
  const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const tarn__halting_row row = tarn__halting_step(&spec, (double)tarn__get(z[r]), number_of(before, r));
  weight[r] = (float)row.weight;
  sum[r] = (float)row.sum;
  runs[r] = (float)row.runs;
  rests[r] = (float)(1.0 - row.runs);
}

template <typename T>
static __global__ void halting_backward_kernel(T *dz, float *dbefore, const T *z, const float *before,
                                               const float *after, const float *dweight, const float *dsum,
                                               int64_t rows, tarn__halting_spec spec) {
  const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const tarn__halting_change d = tarn__halting_gradient(&spec, (double)tarn__get(z[r]), number_of(before, r),
                                                        (double)after[r], number_of(dweight, r), number_of(dsum, r));
  if (dz) tarn__set(dz + r, (float)d.first);
  if (dbefore) dbefore[r] = (float)d.second;
}

// Tangents are in fp32.
static __global__ void halting_tangent_kernel(float *dweight, float *dsum, const float *z, const float *before,
                                              const float *after, const float *dz, const float *dbefore, int64_t rows,
                                              int64_t count) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t r = i % rows;
  const tarn__halting_change d =
      tarn__halting_push((double)z[r], number_of(before, r), (double)after[r], number_of(dz, i), number_of(dbefore, i));
  dweight[i] = (float)d.first;
  dsum[i] = (float)d.second;
}

static float *data_of(const tarn__tensor *tensor) { return tensor ? (float *)tensor->data : NULL; }

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *z = node->in[TARN__HALTING_Z];
  TARN__LAUNCH(halting_kernel<T>, tarn__blocks(z->rows, 128), 128, 0, tarn__cuda_stream(exec->stream),
               data_of(node->out[TARN__HALTING_WEIGHT]), data_of(node->out[TARN__HALTING_SUM]),
               data_of(node->out[TARN__HALTING_RUNS]), data_of(node->out[TARN__HALTING_RESTS]), (const T *)z->data,
               data_of(node->in[TARN__HALTING_BEFORE]), z->rows, *(const tarn__halting_spec *)node->attr);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->in[TARN__HALTING_Z]->dtype, exec, node);
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *z = node->in[TARN__HALTING_Z], *dz = node->out[TARN__HALTING_DZ];
  TARN__LAUNCH(halting_backward_kernel<T>, tarn__blocks(z->rows, 128), 128, 0, tarn__cuda_stream(exec->stream),
               dz ? (T *)dz->data : (T *)NULL, data_of(node->out[TARN__HALTING_DBEFORE]), (const T *)z->data,
               data_of(node->in[TARN__HALTING_BEFORE]), data_of(node->in[TARN__HALTING_AFTER]),
               data_of(node->in[TARN__HALTING_DWEIGHT]), data_of(node->in[TARN__HALTING_DSUM]), z->rows,
               *(const tarn__halting_spec *)node->attr);
  return TARN_STATUS_OK;
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__HALTING_Z]->dtype, exec, node);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const int64_t count = node->out[TARN__HALTING_WEIGHT]->rows;
  TARN__LAUNCH(halting_tangent_kernel, tarn__blocks(count, 128), 128, 0, tarn__cuda_stream(exec->stream),
               data_of(node->out[TARN__HALTING_WEIGHT]), data_of(node->out[TARN__HALTING_SUM]),
               data_of(node->in[TARN__HALTING_Z]), data_of(node->in[TARN__HALTING_BEFORE]),
               data_of(node->in[TARN__HALTING_AFTER]), data_of(node->in[TARN__HALTING_TANGENT_Z]),
               data_of(node->in[TARN__HALTING_TANGENT_BEFORE]), node->in[TARN__HALTING_Z]->rows, count);
  return TARN_STATUS_OK;
}

void tarn__cuda_halting_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_HALTING].run = forward_node;
  kernels[TARN__OP_HALTING_BACKWARD].run = backward_node;
  kernels[TARN__OP_HALTING_TANGENT].run = tangent;
}

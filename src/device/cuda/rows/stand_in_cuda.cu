// Ops on approximate gradients.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/total.h"

extern "C" {
#include "ops/stand_in.h"
}

template <typename T>
struct added {
  T *dx;
  const T *dy, *delta;
  float scale;
  bool whole;
  __device__ void operator()(int64_t, int64_t at, int left) const {
    float v[TARN__EIGHT], by[TARN__EIGHT];
    tarn__read8(v, dy + at, left, whole);
    tarn__read8(by, delta + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] += scale * by[i];
    tarn__write8(dx + at, v, left, whole);
  }
};

// The products of a tarn__stand_in_sums, in its order.
template <typename T>
struct measured {
  const T *approximation, *truth;
  bool whole;
  __device__ void operator()(int64_t, int64_t at, int left, double sums[3]) const {
    float a[TARN__EIGHT], b[TARN__EIGHT];
    tarn__read8(a, approximation + at, left, whole);
    tarn__read8(b, truth + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) {
      sums[0] += (double)a[i] * b[i];
      sums[1] += (double)a[i] * a[i];
      sums[2] += (double)b[i] * b[i];
    }
  }
};

// By three warps, one for each sum.
static __global__ void measure_sums_kernel(double *sums, const double *parts, int64_t count) {
  const int which = (int)threadIdx.x / TARN__WARP_SIZE, lane = (int)threadIdx.x % TARN__WARP_SIZE;
  double sum = 0.0;
  for (int64_t p = lane; p < count; p += TARN__WARP_SIZE) sum += parts[p * 3 + which];
  sum = tarn__warp_sum(sum);
  if (lane == 0) sums[which] = sum;
}

template <typename T>
struct error_of {
  T *error;
  const T *approximation, *truth;
  const double *sums;
  bool whole;
  __device__ void operator()(int64_t, int64_t at, int left) const {
    float a[TARN__EIGHT], b[TARN__EIGHT];
    const double squares = sums[2];
    const float factor = squares > 1e-30 ? (float)(2.0 / squares) : 0.0f;
    tarn__read8(a, approximation + at, left, whole);
    tarn__read8(b, truth + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) a[i] = factor * (a[i] - b[i]);
    tarn__write8(error + at, a, left, whole);
  }
};

static tarn_status copy(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0];
  TARN__CUDA(cudaMemcpyAsync(node->out[0]->data, x->data, (size_t)(x->rows * x->cols) * tarn__dtype_size(x->dtype),
                             cudaMemcpyDeviceToDevice, tarn__cuda_stream(exec->stream)),
             "copying a gradient");
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status add(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->out[0], *dy = node->in[0], *delta = node->in[1];
  const int64_t n = dx->rows * dx->cols;
  const added<T> each = {(T *)dx->data, (const T *)dy->data, (const T *)delta->data,
                         (float)((const tarn__stand_in_add_attr *)node->attr)->scale,
                         tarn__whole_eights(1, n, dx->data, dy->data, delta->data)};
  return tarn__each8(each, 1, n, tarn__cuda_stream(exec->stream));
}

static tarn_status add_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(add, node->out[0]->dtype, exec, node);
}

template <typename T>
static tarn_status measure(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *a = node->in[0], *b = node->in[1], *error = node->out[TARN__STAND_IN_ERROR];
  const int64_t n = a->rows * a->cols;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  double *parts = (double *)node->scratch, *sums = (double *)node->out[TARN__STAND_IN_SUMS]->data;
  const bool whole = tarn__whole_eights(1, n, a->data, b->data, error ? error->data : NULL);
  TARN_TRY(tarn__total<3>(measured<T>{(const T *)a->data, (const T *)b->data, whole}, parts, 1, n, stream));
  TARN__LAUNCH(measure_sums_kernel, 1, 3 * TARN__WARP_SIZE, 0, stream, sums, parts, tarn__total_blocks(1, n));
  if (!error) return TARN_STATUS_OK;
  const error_of<T> each = {(T *)error->data, (const T *)a->data, (const T *)b->data, sums, whole};
  return tarn__each8(each, 1, n, stream);
}

static tarn_status measure_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(measure, node->in[0]->dtype, exec, node);
}

static size_t measure_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__total_bytes(1, node->in[0]->rows * node->in[0]->cols);
}

void tarn__cuda_stand_in_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_STAND_IN_COPY].run = copy;
  kernels[TARN__OP_STAND_IN_ADD].run = add_node;
  kernels[TARN__OP_STAND_IN_MEASURE] = {measure_node, measure_scratch};
}

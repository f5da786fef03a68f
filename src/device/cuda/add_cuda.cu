#include "device/cuda/cuda_kernels.h"

template <typename T>
static __global__ void add_kernel(T *sum, const T *a, const T *b, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tarn__set(sum + i, tarn__get(a[i]) + tarn__get(b[i]));
}

template <typename T>
static tarn_status add(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *sum = node->out[0];
  const int64_t n = sum->rows * sum->cols;
  TARN__LAUNCH(add_kernel<T>, tarn__blocks(n, 256), 256, 0, tarn__cuda_stream(exec->stream), (T *)sum->data,
               (const T *)node->in[0]->data, (const T *)node->in[1]->data, n);
  return TARN_STATUS_OK;
}

static tarn_status add_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(add, node->out[0]->dtype, exec, node);
}

void tarn__cuda_add_entries(tarn__device_kernel *kernels) { kernels[TARN__OP_ADD].run = add_node; }

// Rows filled up to a width; each thread has a column of a row.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/widen.h"
}

// base is NULL, or may be y.
template <typename T>
static __global__ void widen_kernel(T *y, const T *base, const T *x, int64_t x_cols, int64_t cols) {
  const int64_t r = blockIdx.x;
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
    const float other = base ? tarn__get(base[r * cols + c]) : 0.0f;
    tarn__set(y + r * cols + c, c < x_cols ? other + tarn__get(x[r * x_cols + c]) : other);
  }
}

template <typename T>
static __global__ void widen_backward_kernel(T *dx, const T *dy, int64_t x_cols, int64_t cols, bool add) {
  const int64_t r = blockIdx.x;
  for (int64_t c = threadIdx.x; c < x_cols; c += blockDim.x) {
    const float d = tarn__get(dy[r * cols + c]);
    tarn__set(dx + r * x_cols + c, add ? tarn__get(dx[r * x_cols + c]) + d : d);
  }
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__WIDEN_X], *base = node->in[TARN__WIDEN_BASE], *y = node->out[0];
  TARN__LAUNCH(widen_kernel<T>, (unsigned)y->rows, tarn__row_threads(y->cols), 0, tarn__cuda_stream(exec->stream),
               (T *)y->data, base ? (const T *)base->data : (const T *)nullptr, (const T *)x->data, x->cols, y->cols);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__WIDEN_DY], *dx = node->out[0];
  TARN__LAUNCH(widen_backward_kernel<T>, (unsigned)dx->rows, tarn__row_threads(dx->cols), 0,
               tarn__cuda_stream(exec->stream), (T *)dx->data, (const T *)dy->data, dx->cols, dy->cols,
               node->in[TARN__WIDEN_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->out[0]->dtype, exec, node);
}

void tarn__cuda_widen_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_WIDEN].run = forward_node;
  kernels[TARN__OP_WIDEN_BACKWARD].run = backward_node;
}

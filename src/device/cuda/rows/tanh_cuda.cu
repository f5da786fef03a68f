// The op tanh.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/rows.h"

extern "C" {
#include "ops/tanh.h"
}

template <typename T>
struct tanh_forward {
  T *y;
  const T *x;
  bool whole;
  __device__ void operator()(int64_t, int64_t at, int left) const {
    float v[TARN__EIGHT];
    tarn__read8(v, x + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] = tanhf(v[i]);
    tarn__write8(y + at, v, left, whole);
  }
};

// to (+)= g (1 - y^2): the gradient, and with rows of y that repeat the tangent.
template <typename T>
struct tanh_slope {
  T *to;
  const T *y, *g;
  int64_t cols, period;
  bool add, whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float v[TARN__EIGHT], by[TARN__EIGHT], before[TARN__EIGHT] = {0};
    const int64_t at = row * cols + column;
    tarn__read8(v, y + (row < period ? row : row % period) * cols + column, left, whole);
    tarn__read8(by, g + at, left, whole);
    if (add) tarn__read8(before, to + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) before[i] += by[i] * (1.0f - v[i] * v[i]);
    tarn__write8(to + at, before, left, whole);
  }
};

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const int64_t n = x->rows * x->cols;
  const tanh_forward<T> each = {(T *)y->data, (const T *)x->data, tarn__whole_eights(1, n, x->data, y->data)};
  return tarn__each8(each, 1, n, tarn__cuda_stream(exec->stream));
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

template <typename T>
static tarn_status slope(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->in[TARN__TANH_Y], *g = node->in[TARN__TANH_DY], *to = node->out[0];
  const tanh_slope<T> each = {(T *)to->data,
                              (const T *)y->data,
                              (const T *)g->data,
                              y->cols,
                              y->rows,
                              node->in[TARN__TANH_PREVIOUS] != NULL,
                              tarn__whole_eights(to->rows, y->cols, y->data, g->data, to->data)};
  return tarn__each8(each, to->rows, to->cols, tarn__cuda_stream(exec->stream));
}

static tarn_status slope_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(slope, node->out[0]->dtype, exec, node);
}

void tarn__cuda_tanh_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_TANH].run = forward_node;
  kernels[TARN__OP_TANH_BACKWARD].run = kernels[TARN__OP_TANH_TANGENT].run = slope_node;
}

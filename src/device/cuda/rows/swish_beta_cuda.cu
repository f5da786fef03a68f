// Swish with the number beta, and its gate. Of sorted rows of experts only those before the last of the offsets are
// used, a number that only the device knows.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/total.h"

extern "C" {
#include "ops/swish_beta.h"
}

template <typename T>
struct swish_of {
  const T *x, *dy;
  T *to;                // y or dx
  const float *beta;    // NULL: constant
  const int32_t *used;  // rows that are used; NULL: all
  float constant;
  int64_t cols, width, period;  // of y; of x; rows of x
  bool add, whole;
  __device__ bool skips(int64_t row) const { return used && row >= *used; }
  // The first of eight columns of x, and how far the right half is behind it.
  __device__ int64_t at(int64_t row, int64_t column) const { return row * width + column; }
  __device__ int64_t right() const { return width - cols; }
};

static __device__ __forceinline__ float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }

template <typename T>
struct swish_forward {
  swish_of<T> a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    if (a.skips(row)) return;
    float z[TARN__EIGHT], value[TARN__EIGHT];
    const float beta = a.beta ? *a.beta : a.constant;
    tarn__read8(z, a.x + a.at(row, column) + a.right(), left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) z[i] *= sigmoid(beta * z[i]);
    if (a.right()) {
      tarn__read8(value, a.x + a.at(row, column), left, a.whole);
      for (int i = 0; i < TARN__EIGHT; i++) z[i] *= value[i];
    }
    tarn__write8(a.to + row * a.cols + column, z, left, a.whole);
  }
};

// The gradient of x, which may overwrite x, and the sum that is that of beta.
template <typename T>
struct swish_backward {
  swish_of<T> a;
  __device__ void operator()(int64_t row, int64_t column, int left, double sums[1]) const {
    if (a.skips(row)) return;
    float z[TARN__EIGHT], value[TARN__EIGHT], g[TARN__EIGHT], dvalue[TARN__EIGHT] = {0}, dz[TARN__EIGHT] = {0};
    const float beta = a.beta ? *a.beta : a.constant;
    const int64_t at = a.at(row, column), right = a.right();
    tarn__read8(z, a.x + at + right, left, a.whole);
    tarn__read8(g, a.dy + row * a.cols + column, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) value[i] = 1.0f;
    if (right) tarn__read8(value, a.x + at, left, a.whole);
    if (a.to && a.add) tarn__read8(dz, a.to + at + right, left, a.whole);
    if (a.to && a.add && right) tarn__read8(dvalue, a.to + at, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) {
      const float s = sigmoid(beta * z[i]), bend = s * (1.0f - s), slope = s + beta * z[i] * bend;
      sums[0] += (double)g[i] * value[i] * z[i] * z[i] * bend;
      dvalue[i] += g[i] * z[i] * s;
      dz[i] += g[i] * value[i] * slope;
    }
    if (!a.to) return;
    tarn__write8(a.to + at + right, dz, left, a.whole);
    if (right) tarn__write8(a.to + at, dvalue, left, a.whole);
  }
};

// dy here is the tangent of x.
struct swish_tangent {
  swish_of<float> a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float z[TARN__EIGHT], value[TARN__EIGHT], dvalue[TARN__EIGHT], dz[TARN__EIGHT];
    const float beta = a.beta ? *a.beta : a.constant;
    const int64_t at = a.at(row % a.period, column), moved = a.at(row, column), right = a.right();
    tarn__read8(z, a.x + at + right, left, a.whole);
    tarn__read8(dz, a.dy + moved + right, left, a.whole);
    if (right) {
      tarn__read8(value, a.x + at, left, a.whole);
      tarn__read8(dvalue, a.dy + moved, left, a.whole);
    }
    for (int i = 0; i < TARN__EIGHT; i++) {
      const float s = sigmoid(beta * z[i]);
      dz[i] *= s + beta * z[i] * s * (1.0f - s);
      if (right) dz[i] = dvalue[i] * z[i] * s + value[i] * dz[i];
    }
    tarn__write8(a.to + row * a.cols + column, dz, left, a.whole);
  }
};

template <typename T>
static swish_of<T> arguments_of(const tarn__node *node, int64_t cols) {
  const tarn__tensor *x = node->in[TARN__SWISH_X], *beta = node->in[TARN__SWISH_BETA], *dy = node->in[TARN__SWISH_DY];
  const tarn__tensor *offsets = node->in[TARN__SWISH_OFFSETS], *to = node->out[0];
  swish_of<T> a = {};
  a.x = (const T *)x->data;
  a.dy = dy ? (const T *)dy->data : NULL;
  a.to = to ? (T *)to->data : NULL;
  a.beta = beta ? (const float *)beta->data : NULL;
  a.used = offsets ? (const int32_t *)offsets->data + offsets->cols - 1 : NULL;
  a.constant = (float)((const tarn__swish_attr *)node->attr)->beta;
  a.cols = cols;
  a.width = x->cols;
  a.period = x->rows;
  a.add = node->in[TARN__SWISH_PREVIOUS] != NULL;
  a.whole = tarn__whole_eights(2, cols, a.x, a.dy, a.to);
  return a;
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  return tarn__each8(swish_forward<T>{arguments_of<T>(node, y->cols)}, y->rows, y->cols,
                     tarn__cuda_stream(exec->stream));
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SWISH_DY];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  double *parts = (double *)node->scratch;
  int add = 0;
  float *dbeta = tarn__gradient_of(node->dparam[0], &add);
  TARN_TRY(tarn__total<1>(swish_backward<T>{arguments_of<T>(node, dy->cols)}, parts, dy->rows, dy->cols, stream));
  if (!dbeta) return TARN_STATUS_OK;
  return tarn__sum_parts(dbeta, add, (float *)NULL, 0, parts, tarn__total_blocks(dy->rows, dy->cols), 1, 1, stream);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  if (!((const tarn__swish_attr *)node->attr)->forward)
    return TARN__BY_DTYPE(backward, node->in[TARN__SWISH_DY]->dtype, exec, node);
  return tarn__each8(swish_tangent{arguments_of<float>(node, y->cols)}, y->rows, y->cols,
                     tarn__cuda_stream(exec->stream));
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__total_bytes(node->in[TARN__SWISH_DY]->rows, node->in[TARN__SWISH_DY]->cols);
}

void tarn__cuda_swish_beta_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SWISH_BETA].run = forward_node;
  kernels[TARN__OP_SWISH_BETA_BACKWARD] = {backward_node, backward_scratch};
}

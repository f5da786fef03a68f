// Gated linear units: y = left act(right).
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/products/activation_cuda.h"
#include "device/cuda/rows/rows.h"

extern "C" {
#include "ops/glu.h"
}

template <typename T>
struct glu_of {
  const T *x, *dy;
  T *to;         // y or dx
  int64_t cols;  // of y
  tarn__activation form;
  bool add, whole;
};

template <typename T>
struct glu_forward {
  glu_of<T> a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float value[TARN__EIGHT], gate[TARN__EIGHT];
    const T *x = a.x + 2 * row * a.cols + column;
    tarn__read8(value, x, left, a.whole);
    tarn__read8(gate, x + a.cols, left, a.whole);
    tarn__by_activation(a.form, [&](auto form) {
      for (int i = 0; i < TARN__EIGHT; i++) value[i] *= form.value(gate[i]);
    });
    tarn__write8(a.to + row * a.cols + column, value, left, a.whole);
  }
};

// dx may overwrite x: a thread reads both halves of its columns first.
template <typename T>
struct glu_backward {
  glu_of<T> a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float value[TARN__EIGHT], gate[TARN__EIGHT], g[TARN__EIGHT], dvalue[TARN__EIGHT] = {0}, dgate[TARN__EIGHT] = {0};
    const int64_t at = 2 * row * a.cols + column;
    tarn__read8(value, a.x + at, left, a.whole);
    tarn__read8(gate, a.x + at + a.cols, left, a.whole);
    tarn__read8(g, a.dy + row * a.cols + column, left, a.whole);
    if (a.add) {
      tarn__read8(dvalue, a.to + at, left, a.whole);
      tarn__read8(dgate, a.to + at + a.cols, left, a.whole);
    }
    tarn__by_activation(a.form, [&](auto form) {
      for (int i = 0; i < TARN__EIGHT; i++) {
        dvalue[i] += g[i] * form.value(gate[i]);
        dgate[i] += g[i] * value[i] * form.slope(gate[i]);
      }
    });
    tarn__write8(a.to + at, dvalue, left, a.whole);
    tarn__write8(a.to + at + a.cols, dgate, left, a.whole);
  }
};

// dy here is the tangent of x.
struct glu_tangent {
  glu_of<float> a;
  int64_t period;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float value[TARN__EIGHT], gate[TARN__EIGHT], dvalue[TARN__EIGHT], dgate[TARN__EIGHT];
    const float *x = a.x + 2 * (row % period) * a.cols + column, *dx = a.dy + 2 * row * a.cols + column;
    tarn__read8(value, x, left, a.whole);
    tarn__read8(gate, x + a.cols, left, a.whole);
    tarn__read8(dvalue, dx, left, a.whole);
    tarn__read8(dgate, dx + a.cols, left, a.whole);
    tarn__by_activation(a.form, [&](auto form) {
      for (int i = 0; i < TARN__EIGHT; i++)
        dvalue[i] = dvalue[i] * form.value(gate[i]) + value[i] * dgate[i] * form.slope(gate[i]);
    });
    tarn__write8(a.to + row * a.cols + column, dvalue, left, a.whole);
  }
};

template <typename T>
static glu_of<T> arguments_of(const tarn__node *node, int64_t cols) {
  const tarn__tensor *x = node->in[TARN__GLU_X], *dy = node->in[TARN__GLU_DY], *to = node->out[0];
  glu_of<T> a = {};
  a.x = (const T *)x->data;
  a.dy = dy ? (const T *)dy->data : NULL;
  a.to = (T *)to->data;
  a.cols = cols;
  a.form = *(const tarn__activation *)node->attr;
  a.add = node->in[TARN__GLU_PREVIOUS] != NULL;
  a.whole = tarn__whole_eights(2, cols, a.x, a.dy, a.to);  // a row of x has two halves
  return a;
}

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  return tarn__each8(glu_forward<T>{arguments_of<T>(node, y->cols)}, y->rows, y->cols, tarn__cuda_stream(exec->stream));
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__GLU_DY];
  return tarn__each8(glu_backward<T>{arguments_of<T>(node, dy->cols)}, dy->rows, dy->cols,
                     tarn__cuda_stream(exec->stream));
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->out[0]->dtype, exec, node);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->out[0];
  const glu_tangent each = {arguments_of<float>(node, dy->cols), node->in[TARN__GLU_X]->rows};
  return tarn__each8(each, dy->rows, dy->cols, tarn__cuda_stream(exec->stream));
}

void tarn__cuda_glu_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_GLU].run = forward_node;
  kernels[TARN__OP_GLU_BACKWARD].run = backward_node;
  kernels[TARN__OP_GLU_TANGENT].run = tangent;
}

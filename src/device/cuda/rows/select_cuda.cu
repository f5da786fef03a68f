// Rows of a matrix by number, and their gradient.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/by_number.h"

extern "C" {
#include "ops/select.h"
}

template <typename T>
struct selected {
  T *y;
  const T *x;
  const int32_t *numbers;
  int64_t cols;
  bool whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float v[TARN__EIGHT];
    tarn__read8(v, x + numbers[row] * cols + column, left, whole);
    tarn__write8(y + row * cols + column, v, left, whole);
  }
};

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__SELECT_X], *rows = node->in[TARN__SELECT_ROWS], *y = node->out[0];
  const selected<T> each = {(T *)y->data, (const T *)x->data, (const int32_t *)rows->data, x->cols,
                            tarn__whole_eights(2, x->cols, x->data, y->data)};
  return tarn__each8(each, rows->cols, x->cols, tarn__cuda_stream(exec->stream));
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

template <typename T>
struct row_of {
  const T *dy;
  int64_t cols;
  bool whole;
  __device__ void operator()(float v[TARN__EIGHT], int64_t item, int64_t column, int left) const {
    tarn__read8(v, dy + item * cols + column, left, whole);
  }
};

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SELECT_DY], *rows = node->in[TARN__SELECT_ROWS], *dx = node->out[0];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const bool add = node->in[TARN__SELECT_PREVIOUS] != NULL;
  if (!add)
    TARN__CUDA(cudaMemsetAsync(dx->data, 0, (size_t)(dx->rows * dx->cols) * sizeof(T), stream), "clearing a gradient");
  const row_of<T> row = {(const T *)dy->data, dy->cols, tarn__whole_eights(2, dy->cols, dy->data)};
  return tarn__sum_by_number((T *)dx->data, dx->cols, add, (uint8_t *)NULL, row, (const int32_t *)rows->data,
                             rows->cols, node->scratch, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->out[0]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__by_number_bytes(node->in[TARN__SELECT_ROWS]->cols, node->out[0]->cols);
}

void tarn__cuda_select_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SELECT_ROWS].run = forward_node;
  kernels[TARN__OP_SELECT_ROWS_BACKWARD] = {backward_node, backward_scratch};
}

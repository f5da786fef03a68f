// The taps of a row side by side; each thread has a column, or four, of a row.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/neighbours.h"
}

template <typename T, int N>
static __global__ void neighbours_kernel(T *y, const T *x, const int32_t *offset, int64_t sentences, int64_t cols,
                                         tarn__taps taps) {
  const int64_t r = blockIdx.x, s = tarn__sentence_of(offset, sentences, r);
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N)
    for (int64_t k = 0; k < taps.width; k++) {
      const int64_t from = r + k - taps.before;
      float row[N] = {};
      if (from >= offset[s] && from < offset[s + 1]) tarn__load(row, x + from * cols + c);
      tarn__store(y + (r * taps.width + k) * cols + c, row);
    }
}

// dx of row j, which is tap k of row j + before - k.
template <typename T, int N>
static __global__ void neighbours_backward_kernel(T *dx, const T *dy, const int32_t *offset, int64_t sentences,
                                                  int64_t cols, tarn__taps taps, bool add) {
  const int64_t j = blockIdx.x, s = tarn__sentence_of(offset, sentences, j);
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float sum[N] = {}, row[N];
    for (int64_t k = 0; k < taps.width; k++) {
      const int64_t r = j + taps.before - k;
      if (r < offset[s] || r >= offset[s + 1]) continue;
      tarn__load(row, dy + (r * taps.width + k) * cols + c);
      for (int i = 0; i < N; i++) sum[i] += row[i];
    }
    if (add) tarn__load(row, dx + j * cols + c);
    for (int i = 0; i < N && add; i++) sum[i] += row[i];
    tarn__store(dx + j * cols + c, sum);
  }
}

template <typename T, int N>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__NEIGHBOURS_X], *offsets = node->in[TARN__NEIGHBOURS_OFFSETS];
  TARN__LAUNCH((neighbours_kernel<T, N>), (unsigned)x->rows, tarn__row_threads(x->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, (const T *)x->data,
               (const int32_t *)offsets->data, offsets->cols - 1, x->cols, *(const tarn__taps *)node->attr);
  return TARN_STATUS_OK;
}

template <typename T, int N>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->out[0], *offsets = node->in[TARN__NEIGHBOURS_OFFSETS];
  TARN__LAUNCH((neighbours_backward_kernel<T, N>), (unsigned)dx->rows, tarn__row_threads(dx->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)dx->data, (const T *)node->in[TARN__NEIGHBOURS_DY]->data,
               (const int32_t *)offsets->data, offsets->cols - 1, dx->cols, *(const tarn__taps *)node->attr,
               node->in[TARN__NEIGHBOURS_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status forward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__NEIGHBOURS_X]) && tarn__fours(node->out[0]);
  return fours ? forward<T, 4>(exec, node) : forward<T, 1>(exec, node);
}

template <typename T>
static tarn_status backward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__NEIGHBOURS_DY]) && tarn__fours(node->out[0]);
  return fours ? backward<T, 4>(exec, node) : backward<T, 1>(exec, node);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward_of, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward_of, node->out[0]->dtype, exec, node);
}

void tarn__cuda_neighbours_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_NEIGHBOURS].run = forward_node;
  kernels[TARN__OP_NEIGHBOURS_BACKWARD].run = backward_node;
}

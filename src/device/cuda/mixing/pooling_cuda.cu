// Means of windows of rows; each thread has a column, or four, of a row.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/pooling.h"
}

// Where rows are: sentences, or a list with the range of each row.
typedef struct places {
  const int32_t *offset;
  int64_t sentences;
  const int32_t *list, *range;
} places;

static __device__ __forceinline__ tarn__pooling_window window_of(const places &at, const tarn__pooling_spec &spec,
                                                                 int64_t r) {
  if (at.list) return tarn__pooling_window_of(at.range[2 * r + 1] - 1, at.range[2 * r], at.range[2 * r + 1], &spec);
  const int64_t s = tarn__sentence_of(at.offset, at.sentences, r);
  return tarn__pooling_window_of(r, at.offset[s], at.offset[s + 1], &spec);
}

template <typename T, int N>
static __global__ void pooling_kernel(T *y, const T *x, places at, int64_t cols, tarn__pooling_spec spec) {
  const int64_t r = blockIdx.x;
  const tarn__pooling_window w = window_of(at, spec, r);
  const int64_t own = at.list ? at.list[w.last - 1] : r;
  const float count = (float)(w.last - w.first);
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float sum[N] = {}, x_row[N];
    for (int64_t j = w.first; j < w.last; j++) {
      tarn__load(x_row, x + (at.list ? at.list[j] : j) * cols + c);
      for (int i = 0; i < N; i++) sum[i] += x_row[i];
    }
    tarn__load(x_row, x + own * cols + c);
    for (int i = 0; i < N; i++) sum[i] = sum[i] / count - x_row[i];
    tarn__store(y + r * cols + c, sum);
  }
}

// dx of row j from the rows that see it.
template <typename T, int N>
static __global__ void pooling_backward_kernel(T *dx, const T *dy, const int32_t *offset, int64_t sentences,
                                               int64_t cols, tarn__pooling_spec spec, bool add) {
  const int64_t j = blockIdx.x, s = tarn__sentence_of(offset, sentences, j), begin = offset[s], end = offset[s + 1];
  const int64_t earliest = j + spec.before - spec.width + 1, latest = j + spec.before + 1;
  const int64_t first = earliest > begin ? earliest : begin, last = latest < end ? latest : end;
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float sum[N] = {}, row[N];
    for (int64_t r = first; r < last; r++) {
      const tarn__pooling_window w = tarn__pooling_window_of(r, begin, end, &spec);
      const float count = (float)(w.last - w.first);
      tarn__load(row, dy + r * cols + c);
      for (int i = 0; i < N; i++) sum[i] += row[i] / count;
    }
    tarn__load(row, dy + j * cols + c);
    for (int i = 0; i < N; i++) sum[i] -= row[i];
    if (add) tarn__load(row, dx + j * cols + c);
    for (int i = 0; i < N && add; i++) sum[i] += row[i];
    tarn__store(dx + j * cols + c, sum);
  }
}

template <typename T, int N>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__POOLING_X], *offsets = node->in[TARN__POOLING_OFFSETS], *y = node->out[0];
  places at = {};
  if (offsets) {
    at.offset = (const int32_t *)offsets->data;
    at.sentences = offsets->cols - 1;
  } else {
    at.list = (const int32_t *)node->in[TARN__POOLING_ROWS]->data;
    at.range = (const int32_t *)node->in[TARN__POOLING_RANGES]->data;
  }
  TARN__LAUNCH((pooling_kernel<T, N>), (unsigned)y->rows, tarn__row_threads(y->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)y->data, (const T *)x->data, at, y->cols,
               *(const tarn__pooling_spec *)node->attr);
  return TARN_STATUS_OK;
}

template <typename T, int N>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__POOLING_DY], *offsets = node->in[TARN__POOLING_OFFSETS];
  TARN__LAUNCH((pooling_backward_kernel<T, N>), (unsigned)dy->rows, tarn__row_threads(dy->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, (const T *)dy->data,
               (const int32_t *)offsets->data, offsets->cols - 1, dy->cols, *(const tarn__pooling_spec *)node->attr,
               node->in[TARN__POOLING_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status forward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__POOLING_X]) && tarn__fours(node->out[0]);
  return fours ? forward<T, 4>(exec, node) : forward<T, 1>(exec, node);
}

template <typename T>
static tarn_status backward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__POOLING_DY]) && tarn__fours(node->out[0]);
  return fours ? backward<T, 4>(exec, node) : backward<T, 1>(exec, node);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward_of, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward_of, node->out[0]->dtype, exec, node);
}

void tarn__cuda_pooling_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_POOLING].run = forward_node;
  kernels[TARN__OP_POOLING_ROWS].run = forward_node;
  kernels[TARN__OP_POOLING_BACKWARD].run = backward_node;
}

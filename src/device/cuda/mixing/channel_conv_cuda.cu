// A kernel for each channel; each thread has a column, or four, of a row.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/channel_conv.h"
}

// Where rows are: sentences, or a list with the range of each row.
typedef struct places {
  const int32_t *offset;
  int64_t sentences;
  const int32_t *list, *range;
} places;

template <typename T, int N>
static __global__ void channel_conv_kernel(T *y, const T *x, const float *kernel, places at, int64_t cols,
                                           int64_t stride, tarn__taps taps) {
  const int64_t r = blockIdx.x;
  int64_t from = r - taps.before, first = 0, last = 0;
  if (at.list) {
    from = at.range[2 * r + 1] - taps.width, first = at.range[2 * r], last = at.range[2 * r + 1];
  } else {
    const int64_t s = tarn__sentence_of(at.offset, at.sentences, r);
    first = at.offset[s], last = at.offset[s + 1];
  }
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float sum[N] = {}, row[N], factor[N];
    for (int64_t k = 0; k < taps.width; k++) {
      if (from + k < first || from + k >= last) continue;
      const int64_t tap = at.list ? at.list[from + k] : from + k;
      tarn__load(row, x + tap * stride + c);
      tarn__load(factor, kernel + k * cols + c);
      for (int i = 0; i < N; i++) sum[i] += factor[i] * row[i];
    }
    tarn__store(y + r * cols + c, sum);
  }
}

// dx of row j, which is tap k of row j + before - k.
template <typename T, int N>
static __global__ void channel_conv_backward_kernel(T *dx, const T *dy, const float *kernel, const int32_t *offset,
                                                    int64_t sentences, int64_t cols, tarn__taps taps, bool add) {
  const int64_t j = blockIdx.x, s = tarn__sentence_of(offset, sentences, j);
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float sum[N] = {}, row[N], factor[N];
    for (int64_t k = 0; k < taps.width; k++) {
      const int64_t r = j + taps.before - k;
      if (r < offset[s] || r >= offset[s + 1]) continue;
      tarn__load(row, dy + r * cols + c);
      tarn__load(factor, kernel + k * cols + c);
      for (int i = 0; i < N; i++) sum[i] += factor[i] * row[i];
    }
    if (add) tarn__load(row, dx + j * cols + c);
    for (int i = 0; i < N && add; i++) sum[i] += row[i];
    tarn__store(dx + j * cols + c, sum);
  }
}

// The gradient of one tap, blockIdx.z, from a slice of the rows: sums [slices, width, cols]. Each warp has every eighth
// row.
template <typename T>
static __global__ void channel_conv_dkernel_kernel(float *sums, const T *dy, const T *x, const int32_t *offset,
                                                   int64_t sentences, int64_t rows, int64_t cols, tarn__taps taps,
                                                   int64_t each) {
  enum { WARPS = 8 };
  TARN__SHARED(float, of_warps);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t c = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane, begin = blockIdx.y * each;
  const int64_t last = begin + each < rows ? begin + each : rows, ahead = (int64_t)blockIdx.z - taps.before;
  float sum[1] = {};
  for (int64_t r = begin + warp; r < last && c < cols; r += WARPS) {
    const int64_t s = tarn__sentence_of(offset, sentences, r);
    if (r + ahead >= offset[s] && r + ahead < offset[s + 1])
      sum[0] += tarn__get(dy[r * cols + c]) * tarn__get(x[(r + ahead) * cols + c]);
  }
  tarn__part_store<1>(sums + ((int64_t)blockIdx.y * taps.width + blockIdx.z) * cols, sum, c, cols, of_warps);
}

static const tarn__channel_conv_attr *attr_of(const tarn__node *node) {
  return (const tarn__channel_conv_attr *)node->attr;
}

template <typename T, int N>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__CC_X], *offsets = node->in[TARN__CC_OFFSETS], *y = node->out[0];
  places at = {};
  if (offsets) {
    at.offset = (const int32_t *)offsets->data;
    at.sentences = offsets->cols - 1;
  } else {
    at.list = (const int32_t *)node->in[TARN__CC_ROWS]->data;
    at.range = (const int32_t *)node->in[TARN__CC_RANGES]->data;
  }
  TARN__LAUNCH((channel_conv_kernel<T, N>), (unsigned)y->rows, tarn__row_threads(y->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)y->data, (const T *)x->data + attr_of(node)->column,
               (const float *)node->in[TARN__CC_KERNEL]->data, at, y->cols, x->cols, attr_of(node)->taps);
  return TARN_STATUS_OK;
}

template <typename T, int N>
static tarn_status backward_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CC_DY], *offsets = node->in[TARN__CC_OFFSETS];
  TARN__LAUNCH((channel_conv_backward_kernel<T, N>), (unsigned)dy->rows, tarn__row_threads(dy->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, (const T *)dy->data,
               (const float *)node->in[TARN__CC_KERNEL]->data, (const int32_t *)offsets->data, offsets->cols - 1,
               dy->cols, attr_of(node)->taps, node->in[TARN__CC_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward_kernel(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CC_DY], *offsets = node->in[TARN__CC_OFFSETS];
  const tarn__taps taps = attr_of(node)->taps;
  tarn__param *kernel = node->dparam[0];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const bool add = tarn__param_accumulate(kernel) != 0;
  const int64_t slices = tarn__part_count(dy->rows);
  float *sums = (float *)node->scratch;
  TARN__LAUNCH(channel_conv_dkernel_kernel<T>,
               dim3(tarn__blocks(dy->cols, TARN__WARP_SIZE), (unsigned)slices, (unsigned)taps.width), 256,
               256 * sizeof(float), stream, sums, (const T *)dy->data, (const T *)node->in[TARN__CC_X]->data,
               (const int32_t *)offsets->data, offsets->cols - 1, dy->rows, dy->cols, taps, tarn__part_rows(dy->rows));
  return tarn__cuda_sum_parts((float *)kernel->training.grad, sums, slices, taps.width * dy->cols, add, stream);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *dy = node->in[TARN__CC_DY];
  return node->dparam[0] ? (size_t)(tarn__part_count(dy->rows) * attr_of(node)->taps.width * dy->cols) * sizeof(float)
                         : 0;
}

// All rows are aligned for four columns at once: those of x begin at a column.
static bool fours(const tarn__tensor *x, const tarn__tensor *y, const tarn__node *node) {
  return tarn__fours(x) && tarn__fours(y) && attr_of(node)->column % 4 == 0 &&
         (uintptr_t)node->in[TARN__CC_KERNEL]->data % 16 == 0;
}

template <typename T>
static tarn_status forward_of(const tarn__exec *exec, const tarn__node *node) {
  return fours(node->in[TARN__CC_X], node->out[0], node) ? forward<T, 4>(exec, node) : forward<T, 1>(exec, node);
}

template <typename T>
static tarn_status backward_of(const tarn__exec *exec, const tarn__node *node) {
  tarn_status status = TARN_STATUS_OK;
  if (node->out[0])
    status = fours(node->in[TARN__CC_DY], node->out[0], node) ? backward_rows<T, 4>(exec, node)
                                                              : backward_rows<T, 1>(exec, node);
  return status == TARN_STATUS_OK && node->dparam[0] ? backward_kernel<T>(exec, node) : status;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward_of, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward_of, node->in[TARN__CC_DY]->dtype, exec, node);
}

void tarn__cuda_channel_conv_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_CHANNEL_CONV].run = forward_node;
  kernels[TARN__OP_CHANNEL_CONV_ROWS].run = forward_node;
  kernels[TARN__OP_CHANNEL_CONV_BACKWARD].run = backward_node;
  kernels[TARN__OP_CHANNEL_CONV_BACKWARD].scratch = backward_scratch;
}

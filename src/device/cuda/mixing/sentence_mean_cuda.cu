// Means of the rows of sentences.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/sentence_mean.h"
}

static const int WARPS = 8;

// A block has 32 N columns of a sentence; each warp every eighth row of it, and all of them are added in their order.
template <typename T, int N>
static __global__ void sentence_mean_kernel(T *y, const T *x, const int32_t *offset, int64_t cols) {
  TARN__SHARED(float, of_warps);
  const int64_t s = blockIdx.x, begin = offset[s], end = offset[s + 1];
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t c = ((int64_t)blockIdx.y * TARN__WARP_SIZE + lane) * N;
  float sum[N] = {}, row[N];
  for (int64_t r = begin + warp; r < end && c < cols; r += WARPS) {
    tarn__load(row, x + r * cols + c);
    for (int i = 0; i < N; i++) sum[i] += row[i];
  }
  for (int i = 0; i < N; i++) of_warps[(warp * N + i) * TARN__WARP_SIZE + lane] = sum[i];
  __syncthreads();
  if (warp > 0 || c >= cols) return;
  for (int i = 0; i < N; i++) {
    for (int w = 1; w < WARPS; w++) sum[i] += of_warps[(w * N + i) * TARN__WARP_SIZE + lane];
    sum[i] = begin < end ? sum[i] / (float)(end - begin) : 0.0f;
  }
  tarn__store(y + s * cols + c, sum);
}

template <typename T, int N>
static __global__ void sentence_mean_backward_kernel(T *dx, const T *dy, const int32_t *offset, int64_t sentences,
                                                     int64_t cols, bool add) {
  const int64_t r = blockIdx.x, s = tarn__sentence_of(offset, sentences, r);
  const float count = (float)(offset[s + 1] - offset[s]);
  for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
    float gradient[N], before[N] = {};
    tarn__load(gradient, dy + s * cols + c);
    if (add) tarn__load(before, dx + r * cols + c);
    for (int i = 0; i < N; i++) gradient[i] = before[i] + gradient[i] / count;
    tarn__store(dx + r * cols + c, gradient);
  }
}

template <typename T, int N>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  TARN__LAUNCH((sentence_mean_kernel<T, N>), dim3((unsigned)y->rows, tarn__blocks(y->cols, TARN__WARP_SIZE * N)),
               WARPS * TARN__WARP_SIZE, WARPS * TARN__WARP_SIZE * N * sizeof(float), tarn__cuda_stream(exec->stream),
               (T *)y->data, (const T *)node->in[TARN__SENTENCE_MEAN_X]->data,
               (const int32_t *)node->in[TARN__SENTENCE_MEAN_OFFSETS]->data, y->cols);
  return TARN_STATUS_OK;
}

template <typename T, int N>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->out[0], *dy = node->in[TARN__SENTENCE_MEAN_DY];
  TARN__LAUNCH((sentence_mean_backward_kernel<T, N>), (unsigned)dx->rows, tarn__row_threads(dx->cols / N), 0,
               tarn__cuda_stream(exec->stream), (T *)dx->data, (const T *)dy->data,
               (const int32_t *)node->in[TARN__SENTENCE_MEAN_OFFSETS]->data, dy->rows, dx->cols,
               node->in[TARN__SENTENCE_MEAN_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status forward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__SENTENCE_MEAN_X]) && tarn__fours(node->out[0]);
  return fours ? forward<T, 4>(exec, node) : forward<T, 1>(exec, node);
}

template <typename T>
static tarn_status backward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool fours = tarn__fours(node->in[TARN__SENTENCE_MEAN_DY]) && tarn__fours(node->out[0]);
  return fours ? backward<T, 4>(exec, node) : backward<T, 1>(exec, node);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward_of, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward_of, node->out[0]->dtype, exec, node);
}

void tarn__cuda_sentence_mean_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SENTENCE_MEAN].run = forward_node;
  kernels[TARN__OP_SENTENCE_MEAN_BACKWARD].run = backward_node;
}

#include "device/cuda/attention/attention_cuda.h"

extern "C" {
#include "ops/bias_table.h"
}

static __global__ void bias_buckets_kernel(int32_t *bucket, tarn__bias_table_spec spec) {
  const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (n <= 2 * spec.max_distance) bucket[n] = (int32_t)tarn__bias_bucket(&spec, n - spec.max_distance);
}

// A row of the grid for each head.
template <typename T>
static __global__ void bias_table_kernel(float *y, const T *table, const int32_t *bucket, int64_t heads, int64_t cols) {
  const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y;
  if (n < cols) y[h * cols + n] = tarn__get(table[bucket[n] * heads + h]);
}

// An element of the table a thread, which adds its distances in their order.
static __global__ void bias_table_backward_kernel(float *grad, const float *dy, const int32_t *bucket, int64_t heads,
                                                  int64_t buckets, int64_t cols, int accumulate) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, b = i / heads, h = i % heads;
  if (b >= buckets) return;
  float sum = accumulate ? grad[i] : 0.0f;
  for (int64_t n = 0; n < cols; n++)
    if (bucket[n] == b) sum += dy[h * cols + n];
  grad[i] = sum;
}

static tarn_status buckets(const tarn__node *node, cudaStream_t stream) {
  const tarn__bias_table_spec *spec = (const tarn__bias_table_spec *)node->attr;
  TARN__LAUNCH(bias_buckets_kernel, tarn__blocks(2 * spec->max_distance + 1, 256), 256, 0, stream,
               (int32_t *)node->scratch, *spec);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status bias_table(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__BIAS_TABLE_TABLE], *y = node->out[0];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  TARN_TRY(buckets(node, stream));
  TARN__LAUNCH(bias_table_kernel<T>, dim3(tarn__blocks(y->cols, 256), (unsigned)y->rows), 256, 0, stream,
               (float *)y->data, (const T *)table->data, (const int32_t *)node->scratch, y->rows, y->cols);
  return TARN_STATUS_OK;
}

static tarn_status bias_table_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(bias_table, node->in[TARN__BIAS_TABLE_TABLE]->dtype, exec, node);
}

static tarn_status bias_table_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__bias_table_spec *spec = (const tarn__bias_table_spec *)node->attr;
  const tarn__tensor *dy = node->in[TARN__BIAS_TABLE_DY];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const int accumulate = tarn__cuda_calls_now->param_accumulate(node->dparam[0]);
  TARN_TRY(buckets(node, stream));
  TARN__LAUNCH(bias_table_backward_kernel, tarn__blocks(spec->buckets * dy->rows, 64), 64, 0, stream,
               (float *)node->dparam[0]->training.grad, (const float *)dy->data, (const int32_t *)node->scratch,
               dy->rows, spec->buckets, dy->cols, accumulate);
  return TARN_STATUS_OK;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__bias_table_scratch((const tarn__bias_table_spec *)node->attr);
}

void tarn__cuda_bias_table_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_BIAS_TABLE].run = bias_table_node;
  kernels[TARN__OP_BIAS_TABLE].scratch = scratch;
  kernels[TARN__OP_BIAS_TABLE_BACKWARD].run = bias_table_backward;
  kernels[TARN__OP_BIAS_TABLE_BACKWARD].scratch = scratch;
}

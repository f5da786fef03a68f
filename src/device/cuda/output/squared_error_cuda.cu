// Regression: a number per row, its squared error, and their gradients. One warp a row.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"

extern "C" {
#include "ops/squared_error.h"
}

enum { WARPS = 8 };

typedef struct error_rows {
  const void *x, *weight, *bias;
  bool weight_bf16, bias_bf16;
  const int32_t *values;  // the bits of floats; NULL: only the numbers are wanted
  int64_t rows, cols;
  double scale;
  void *dx;        // NULL: not wanted
  float *numbers;  // [rows]
  float *slopes;   // [rows] the gradient of each number
  double *losses;  // [rows, 2]
} error_rows;

static __device__ __forceinline__ float value_at(const void *x, bool bf16, int64_t i) {
  return bf16 ? tarn__get(((const tarn__bf16 *)x)[i]) : ((const float *)x)[i];
}

template <typename T>
static __global__ void squared_error_kernel(error_rows w) {
  const int64_t r = (int64_t)blockIdx.x * WARPS + threadIdx.x / TARN__WARP_SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  if (r >= w.rows) return;  // a whole warp
  const T *x = (const T *)w.x + r * w.cols;
  float sum = 0.0f;
  for (int64_t i = lane; i < w.cols; i += TARN__WARP_SIZE)
    sum += tarn__get(x[i]) * value_at(w.weight, w.weight_bf16, i);
  const float number = tarn__warp_sum(sum) + value_at(w.bias, w.bias_bf16, 0);
  if (lane == 0) w.numbers[r] = number;
  if (!w.values) return;
  const double error = (double)number - (double)__uint_as_float((uint32_t)w.values[r]);
  const float slope = (float)(2.0 * w.scale * error);
  if (lane == 0) {
    w.losses[2 * r] = w.losses[2 * r + 1] = error * error;
    w.slopes[r] = slope;
  }
  if (!w.dx) return;
  for (int64_t i = lane; i < w.cols; i += TARN__WARP_SIZE)
    tarn__set((T *)w.dx + r * w.cols + i, slope * value_at(w.weight, w.weight_bf16, i));
}

typedef struct layout {
  size_t losses, slopes, partial, bytes;
} layout;

static layout layout_of(const tarn__node *node) {
  const int64_t rows = node->in[TARN__SQUARED_ERROR_X]->rows;
  layout l = {};
  l.losses = tarn__room_after(&l.bytes, 2 * rows, sizeof(double));
  l.slopes = tarn__room_after(&l.bytes, rows, sizeof(float));
  l.partial = tarn__room_after(&l.bytes, (int64_t)tarn__column_sums_bytes(node->in[TARN__SQUARED_ERROR_X]->cols), 1);
  return l;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  return layout_of(node).bytes;
}

static tarn_status param_gradients(const tarn__node *node, const layout *l, int64_t rows, cudaStream_t stream) {
  const tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X];
  const float *slopes = (const float *)((char *)node->scratch + l->slopes);
  float *partial = (float *)((char *)node->scratch + l->partial);
  tarn__param *weight = node->dparam[0], *bias = node->dparam[1];
  if (weight)
    TARN_TRY(tarn__cuda_column_sums((float *)weight->training.grad, x->data, x->dtype, x->cols, rows, x->cols, slopes,
                                    tarn__param_accumulate(weight) != 0, partial, stream));
  if (bias)
    TARN_TRY(tarn__cuda_column_sums((float *)bias->training.grad, slopes, TARN__F32, 1, rows, 1, NULL,
                                    tarn__param_accumulate(bias) != 0, partial, stream));
  return TARN_STATUS_OK;
}

static tarn_status squared_error(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X], *values = node->in[TARN__SQUARED_ERROR_VALUES];
  const tarn__tensor *weight = node->in[TARN__SQUARED_ERROR_WEIGHT], *bias = node->in[TARN__SQUARED_ERROR_BIAS];
  const layout l = layout_of(node);
  error_rows w = {};
  w.x = x->data;
  w.weight = weight->data;
  w.bias = bias->data;
  w.weight_bf16 = weight->dtype == TARN__BF16;
  w.bias_bf16 = bias->dtype == TARN__BF16;
  w.values = values ? (const int32_t *)values->data : NULL;
  w.rows = x->rows;
  w.cols = x->cols;
  w.scale = ((const tarn__squared_error_attr *)node->attr)->grad_scale;
  w.dx = node->out[TARN__SQUARED_ERROR_DX] ? node->out[TARN__SQUARED_ERROR_DX]->data : NULL;
  w.numbers = (float *)node->out[TARN__SQUARED_ERROR_NUMBERS]->data;
  w.losses = (double *)((char *)node->scratch + l.losses);
  w.slopes = (float *)((char *)node->scratch + l.slopes);
  const unsigned blocks = tarn__blocks(w.rows, WARPS), threads = (unsigned)WARPS * TARN__WARP_SIZE;
  if (x->dtype == TARN__BF16)
    TARN__LAUNCH(squared_error_kernel<tarn__bf16>, blocks, threads, 0, stream, w);
  else
    TARN__LAUNCH(squared_error_kernel<float>, blocks, threads, 0, stream, w);
  // Without values the loss is 0, a sum of no rows, and so are the gradients.
  const int64_t rows = values ? w.rows : 0;
  TARN_TRY(param_gradients(node, &l, rows, stream));
  return tarn__cuda_loss_totals((double *)node->out[TARN__SQUARED_ERROR_LOSS]->data, w.losses, 1, rows, stream);
}

void tarn__cuda_squared_error_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SQUARED_ERROR].run = squared_error;
  kernels[TARN__OP_SQUARED_ERROR].scratch = scratch;
}

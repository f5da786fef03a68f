#include "device/cuda/attention/attention_cuda.h"

extern "C" {
#include "ops/rotary.h"
}

// A block has 32 pairs of columns of each head and 8 times ROWS rows; a thread has one pair of all heads.
enum { PAIRS = 32, LINES = 8, ROWS = 4 };

template <typename T>
static __global__ void rotary_kernel(T *y, const T *x, const int32_t *positions, int64_t rows, int64_t cols,
                                     tarn__rotary_spec spec, double sign) {
  const int64_t half = spec.rotated / 2, i = (int64_t)blockIdx.y * PAIRS + threadIdx.x;
  if (i >= half) return;
  const double plain = pow(spec.base, -2.0 * (double)i / (double)spec.rotated);
  const double frequency = plain * tarn__rotary_slowing(&spec.scaling, plain / 6.28318530717958647692);
  for (int n = 0; n < ROWS; n++) {
    const int64_t row = ((int64_t)blockIdx.x * ROWS + n) * LINES + threadIdx.y;
    if (row >= rows) return;
    double s, c;
    sincos(positions[row] * frequency, &s, &c);
    const float sine = (float)(sign * s), cosine = (float)c;
    for (int64_t h = 0; h < spec.heads; h++) {
      const int64_t at = row * cols + spec.column + h * spec.width + i;
      const float first = tarn__get(x[at]), second = tarn__get(x[at + half]);
      tarn__set(y + at, first * cosine - second * sine);
      tarn__set(y + at + half, second * cosine + first * sine);
    }
  }
}

template <typename T>
static tarn_status rotary(const tarn__exec *exec, const tarn__node *node) {
  const tarn__rotary_attr *attr = (const tarn__rotary_attr *)node->attr;
  const tarn__tensor *x = node->in[TARN__ROTARY_X], *y = node->out[0];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const size_t bytes = (size_t)(x->rows * x->cols) * sizeof(T);
  if (y->data != x->data && bytes > 0)  // the columns that are not rotated
    TARN__CUDA(cudaMemcpyAsync(y->data, x->data, bytes, cudaMemcpyDeviceToDevice, stream), "copying on the device");
  const dim3 blocks(tarn__blocks(x->rows, LINES * ROWS), tarn__blocks(attr->spec.rotated / 2, PAIRS));
  TARN__LAUNCH(rotary_kernel<T>, blocks, dim3(PAIRS, LINES), 0, stream, (T *)y->data, (const T *)y->data,
               (const int32_t *)node->in[TARN__ROTARY_POSITIONS]->data, x->rows, x->cols, attr->spec,
               attr->back ? -1.0 : 1.0);
  return TARN_STATUS_OK;
}

static tarn_status rotary_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(rotary, node->out[0]->dtype, exec, node);
}

void tarn__cuda_rotary_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ROTARY].run = rotary_node;
  kernels[TARN__OP_ROTARY_BACKWARD].run = rotary_node;  // by the negative angle
}

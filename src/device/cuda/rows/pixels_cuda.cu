// The op pixels.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/pixels.h"
}

// A number a thread.
template <typename T>
static __global__ void pixels_kernel(T *x, const uint8_t *bytes, const int32_t *ids, int64_t rows, int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) tarn__set(x + i, ids[i / cols] == 0 ? 0.0f : (float)tarn__pixel_value(bytes[i]));
}

template <typename T>
static tarn_status pixels(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->out[0];
  TARN__LAUNCH(pixels_kernel<T>, tarn__blocks(x->rows * x->cols, 256), 256, 0, tarn__cuda_stream(exec->stream),
               (T *)x->data, (const uint8_t *)node->in[TARN__PIXELS_BYTES]->data,
               (const int32_t *)node->in[TARN__PIXELS_IDS]->data, x->rows, x->cols);
  return TARN_STATUS_OK;
}

static tarn_status pixels_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(pixels, node->out[0]->dtype, exec, node);
}

void tarn__cuda_pixels_entries(tarn__device_kernel *kernels) { kernels[TARN__OP_PIXELS].run = pixels_node; }

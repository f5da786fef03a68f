// Dropout, its gradient, and the gradient of a residual sum with dropout: y = mask x.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/rows.h"

extern "C" {
#include "ops/residual_norm.h"
}

template <typename T>
struct masked {
  T *y;
  const T *x;
  int64_t cols, period;  // period: rows of the mask
  tarn__mask mask;
  bool whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float v[TARN__EIGHT];
    tarn__read8(v, x + row * cols + column, left, whole);
    tarn__drop8(v, mask, row < period ? row : row % period, column);
    tarn__write8(y + row * cols + column, v, left, whole);
  }
};

template <typename T>
static tarn_status run(const tarn__exec *exec, const tarn__tensor *y, const tarn__tensor *x, int64_t period,
                       tarn__dropout dropout) {
  const bool whole = tarn__whole_eights(x->rows, x->cols, x->data, y->data);
  const masked<T> each = {(T *)y->data, (const T *)x->data, x->cols, period, tarn__mask_of(dropout, exec), whole};
  return tarn__each8(each, x->rows, x->cols, tarn__cuda_stream(exec->stream));
}

static tarn_status dropout(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0];
  return TARN__BY_DTYPE(run, x->dtype, exec, node->out[0], x, node->in[1] ? node->in[1]->rows : x->rows,
                        *(const tarn__dropout *)node->attr);
}

static tarn_status residual_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dsum = node->in[TARN__RN_DSUM];
  return TARN__BY_DTYPE(run, dsum->dtype, exec, node->out[TARN__RN_DBRANCH], dsum, dsum->rows,
                        ((const tarn__residual_norm_attr *)node->attr)->dropout);
}

void tarn__cuda_dropout_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_DROPOUT].run = kernels[TARN__OP_DROPOUT_BACKWARD].run = dropout;
  kernels[TARN__OP_RESIDUAL_BACKWARD].run = residual_backward;
}

// One number times a tensor, plus one number.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/total.h"

extern "C" {
#include "ops/scale.h"
}

template <typename T>
struct scaled {
  T *y;
  const T *x;
  const float *gain, *shift;
  bool whole;
  __device__ void operator()(int64_t, int64_t at, int left) const {
    float v[TARN__EIGHT];
    const float factor = gain ? *gain : 1.0f, term = shift ? *shift : 0.0f;
    tarn__read8(v, x + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] = v[i] * factor + term;
    tarn__write8(y + at, v, left, whole);
  }
};

// dx (+)= gain dy; the sums of dy x and of dy.
template <typename T>
struct scale_gradient {
  T *dx;
  const T *dy, *x;
  const float *gain;
  bool add, whole;
  __device__ void operator()(int64_t, int64_t at, int left, double sums[2]) const {
    float g[TARN__EIGHT], v[TARN__EIGHT] = {0};
    tarn__read8(g, dy + at, left, whole);
    if (x) tarn__read8(v, x + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) {
      sums[0] += (double)g[i] * v[i];
      sums[1] += g[i];
    }
    if (!dx) return;
    float before[TARN__EIGHT] = {0};
    const float factor = *gain;
    if (add) tarn__read8(before, dx + at, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) before[i] += g[i] * factor;
    tarn__write8(dx + at, before, left, whole);
  }
};

static void *data_of(const tarn__tensor *tensor) { return tensor ? tensor->data : NULL; }

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__SCALE_X];
  const int64_t n = x->rows * x->cols;
  const scaled<T> each = {
      (T *)node->out[0]->data, (const T *)x->data, (const float *)data_of(node->in[TARN__SCALE_GAIN]),
      (const float *)data_of(node->in[TARN__SCALE_SHIFT]), tarn__whole_eights(1, n, x->data, node->out[0]->data)};
  return tarn__each8(each, 1, n, tarn__cuda_stream(exec->stream));
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SCALE_DY];
  const int64_t n = dy->rows * dy->cols;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  int add_gain = 0, add_shift = 0;
  float *dgain = tarn__gradient_of(node->dparam[TARN__SCALE_DGAIN], &add_gain);
  float *dshift = tarn__gradient_of(node->dparam[TARN__SCALE_DSHIFT], &add_shift);
  scale_gradient<T> each = {};
  each.dx = (T *)data_of(node->out[TARN__SCALE_DX]);
  each.dy = (const T *)dy->data;
  each.x = (const T *)data_of(node->in[TARN__SCALE_SAVED_X]);
  each.gain = (const float *)data_of(node->in[TARN__SCALE_SAVED_GAIN]);
  each.add = node->in[TARN__SCALE_PREVIOUS] != NULL;
  each.whole = tarn__whole_eights(1, n, each.dx, each.dy, each.x);
  double *parts = (double *)node->scratch;
  TARN_TRY(tarn__total<2>(each, parts, 1, n, stream));
  if (!dgain && !dshift) return TARN_STATUS_OK;
  return tarn__sum_parts(dgain, add_gain, dshift, add_shift, parts, tarn__total_blocks(1, n), 1, 2, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__SCALE_DY]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__total_bytes(1, node->in[TARN__SCALE_DY]->rows * node->in[TARN__SCALE_DY]->cols);
}

void tarn__cuda_scale_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SCALE].run = forward_node;
  kernels[TARN__OP_SCALE_BACKWARD] = {backward_node, backward_scratch};
}

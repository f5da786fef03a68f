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

// The factor of a share, and what a share adds to the gradient: one thread of a warp.
static __global__ void share_kernel(float *factor, const float *shares, int64_t count, int64_t of) {
  if (threadIdx.x == 0) *factor = (float)tarn__share_of(shares, count, of);
}

static __global__ void shares_add_kernel(float *grad, const float *shares, int64_t count, int64_t of,
                                         const float *dgain) {
  if (threadIdx.x == 0) tarn__shares_add(grad, shares, count, of, (double)*dgain);
}

// Where the factor is: the gain itself, or the first number of `room`, where it is computed.
static tarn_status factor_of(const float **factor, const tarn__node *node, const tarn__tensor *gain, void *room,
                             cudaStream_t stream) {
  *factor = gain ? (const float *)gain->data : NULL;
  if (!node->attr || !gain) return TARN_STATUS_OK;
  TARN__LAUNCH(share_kernel, 1, 32, 0, stream, (float *)room, (const float *)gain->data, gain->cols,
               ((const tarn__scale_share_spec *)node->attr)->of);
  *factor = (const float *)room;
  return TARN_STATUS_OK;
}

static void *data_of(const tarn__tensor *tensor) { return tensor ? tensor->data : NULL; }

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__SCALE_X];
  const int64_t n = x->rows * x->cols;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const float *gain;
  TARN_TRY(factor_of(&gain, node, node->in[TARN__SCALE_GAIN], node->scratch, stream));
  const scaled<T> each = {(T *)node->out[0]->data, (const T *)x->data, gain,
                          (const float *)data_of(node->in[TARN__SCALE_SHIFT]),
                          tarn__whole_eights(1, n, x->data, node->out[0]->data)};
  return tarn__each8(each, 1, n, stream);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->out[0]->dtype, exec, node);
}

// The sums of a node's parts, then `room`: the factor, and the gradient of the share.
static size_t total_bytes(const tarn__node *node) {
  return tarn__total_bytes(1, node->in[TARN__SCALE_DY]->rows * node->in[TARN__SCALE_DY]->cols);
}

static tarn_status add_to_shares(const tarn__node *node, float *grad, int accumulate, float *room, int64_t n,
                                 cudaStream_t stream) {
  const tarn__tensor *shares = node->in[TARN__SCALE_SAVED_GAIN];
  if (!accumulate)
    TARN__CUDA(cudaMemsetAsync(grad, 0, (size_t)shares->cols * sizeof(float), stream), "clearing a gradient");
  TARN_TRY(
      tarn__sum_parts(room + 1, 0, (float *)NULL, 0, (double *)node->scratch, tarn__total_blocks(1, n), 1, 2, stream));
  TARN__LAUNCH(shares_add_kernel, 1, 32, 0, stream, grad, (const float *)shares->data, shares->cols,
               ((const tarn__scale_share_spec *)node->attr)->of, room + 1);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SCALE_DY];
  const int64_t n = dy->rows * dy->cols;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  int add_gain = 0, add_shift = 0;
  float *const room = (float *)((char *)node->scratch + total_bytes(node));
  float *dgain = tarn__gradient_of(node->dparam[TARN__SCALE_DGAIN], &add_gain);
  float *dshift = tarn__gradient_of(node->dparam[TARN__SCALE_DSHIFT], &add_shift);
  scale_gradient<T> each = {};
  each.dx = (T *)data_of(node->out[TARN__SCALE_DX]);
  each.dy = (const T *)dy->data;
  each.x = (const T *)data_of(node->in[TARN__SCALE_SAVED_X]);
  TARN_TRY(factor_of(&each.gain, node, node->in[TARN__SCALE_SAVED_GAIN], room, stream));
  each.add = node->in[TARN__SCALE_PREVIOUS] != NULL;
  each.whole = tarn__whole_eights(1, n, each.dx, each.dy, each.x);
  double *parts = (double *)node->scratch;
  TARN_TRY(tarn__total<2>(each, parts, 1, n, stream));
  if (!dgain && !dshift) return TARN_STATUS_OK;
  if (node->attr) return add_to_shares(node, dgain, add_gain, room, n, stream);
  return tarn__sum_parts(dgain, add_gain, dshift, add_shift, parts, tarn__total_blocks(1, n), 1, 2, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__SCALE_DY]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return total_bytes(node) + 2 * sizeof(float);
}

static size_t forward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return node->attr ? sizeof(float) : 0;
}

void tarn__cuda_scale_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SCALE] = {forward_node, forward_scratch};
  kernels[TARN__OP_SCALE_BACKWARD] = {backward_node, backward_scratch};
}

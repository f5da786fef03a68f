// Residual sums and norms, bound by memory: one pass over the rows. The gradients of gain and bias are summed by each
// thread over the rows that it meets, then over the warps of a block, then over the blocks, whose number does not
// depend on the card.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/norm_rows.h"

template <typename T>
struct forward_of {
  const T *x, *branch;
  const float *gain, *bias;
  T *sum, *y;
  float *stats;
  int64_t rows;
  int cols;
  tarn__mask mask;
  float skip, factor, epsilon;
  tarn__norm_form form;
  bool whole;
};

// skip x + mask branch, rounded as it is stored, so that a norm of the stored sum has the same bits.
template <typename T>
static __device__ __forceinline__ void sum8(float v[TARN__EIGHT], const T *x, const T *branch, const tarn__mask &mask,
                                            float skip, int64_t row, int64_t cols, int64_t column, int left,
                                            bool whole) {
  const int64_t at = row * cols + column;
  tarn__read8(v, x + at, left, whole);
  if (!branch) return;
  float b[TARN__EIGHT];
  tarn__read8(b, branch + at, left, whole);
  tarn__drop8(b, mask, row, column);
  for (int i = 0; i < TARN__EIGHT; i++) v[i] = tarn__rounded<T>(skip * v[i] + b[i]);
}

template <typename T, int WIDE, int E>
static __global__ void __launch_bounds__(TARN__NORM_THREADS) residual_norm_kernel(const forward_of<T> a) {
  TARN__SHARED(float, shared);
  const int64_t row = (int64_t)blockIdx.x * (TARN__NORM_THREADS / WIDE) + threadIdx.x / WIDE;
  if (row >= a.rows) return;  // whole warps, or nobody
  float v[E][TARN__EIGHT], mean = 0.0f, squares = 0.0f;
  const float share = 1.0f / (float)a.cols;
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
    if (left <= 0) continue;
    sum8(v[e], a.x, a.branch, a.mask, a.skip, row, a.cols, c, left, a.whole);
    if (a.sum) tarn__write8(a.sum + row * a.cols + c, v[e], left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) mean += v[e][i];
  }
  mean = a.form == TARN__NORM_LAYER ? tarn__row_sum<WIDE>(mean, shared) * share : 0.0f;
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int left = a.cols - tarn__norm_column<WIDE>(e);
    for (int i = 0; i < TARN__EIGHT; i++)
      if (i < left) squares += (v[e][i] - mean) * (v[e][i] - mean);
  }
  const float rstd = 1.0f / sqrtf(tarn__row_sum<WIDE>(squares, shared) * share + a.epsilon);
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
    if (left <= 0) continue;
    float g[TARN__EIGHT], b[TARN__EIGHT] = {0};
    tarn__read_gain(g, a.gain, a.factor, a.form == TARN__NORM_SCALE, c, left, a.whole);
    if (a.bias) tarn__read8(b, a.bias + c, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) b[i] += (v[e][i] - mean) * rstd * g[i];
    tarn__write8(a.y + row * a.cols + c, b, left, a.whole);
  }
  if (!a.stats || threadIdx.x % WIDE != 0) return;
  if (a.form == TARN__NORM_LAYER) {
    a.stats[2 * row] = mean;
    a.stats[2 * row + 1] = rstd;
  } else {
    a.stats[row] = rstd;
  }
}

template <typename T, int WIDE, int E>
static tarn_status launch_forward(const forward_of<T> &a, cudaStream_t stream) {
  TARN__LAUNCH((residual_norm_kernel<T, WIDE, E>), tarn__blocks(a.rows, TARN__NORM_THREADS / WIDE), TARN__NORM_THREADS,
               TARN__WARP_SIZE * sizeof(float), stream, a);
  return TARN_STATUS_OK;
}

// The sum alone.
template <typename T>
struct sum_alone {
  forward_of<T> a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float v[TARN__EIGHT];
    sum8(v, a.x, a.branch, a.mask, a.skip, row, a.cols, column, left, a.whole);
    tarn__write8(a.sum + row * a.cols + column, v, left, a.whole);
  }
};

template <typename T>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RN_X];
  const tarn__residual_norm_attr *attr = (const tarn__residual_norm_attr *)node->attr;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  forward_of<T> a = {};
  a.x = (const T *)x->data;
  a.branch = (const T *)tarn__data_of(node->in[TARN__RN_BRANCH]);
  a.gain = (const float *)tarn__data_of(node->in[TARN__RN_GAIN]);
  a.bias = (const float *)tarn__data_of(node->in[TARN__RN_BIAS]);
  a.sum = (T *)tarn__data_of(node->out[TARN__RN_SUM]);
  a.y = (T *)tarn__data_of(node->out[TARN__RN_Y]);
  a.stats = (float *)tarn__data_of(node->out[TARN__RN_STATS]);
  a.rows = x->rows;
  a.cols = (int)x->cols;
  a.mask = tarn__mask_of(attr->dropout, exec);
  a.skip = (float)attr->skip;
  a.factor = tarn__gain_factor(attr->form, x->cols);
  a.epsilon = (float)attr->epsilon;
  a.form = attr->form;
  a.whole = tarn__whole_eights(x->rows, x->cols, a.x, a.branch, a.sum, a.y, a.gain, a.bias);
  if (!a.y) return a.sum ? tarn__each8(sum_alone<T>{a}, x->rows, x->cols, stream) : TARN_STATUS_OK;
  return TARN__BY_WIDTH(launch_forward, T, x->cols, a, stream);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward, node->in[TARN__RN_X]->dtype, exec, node);
}

const char *tarn__cuda_norm_lacks(const tarn__node *node) {
  const bool norm = node->op->id == TARN__OP_NORM || node->op->id == TARN__OP_RESIDUAL_NORM;
  const tarn__tensor *y = norm ? node->out[TARN__RN_Y] : NULL;
  return y && y->cols > TARN__NORM_WIDEST ? tarn__cuda_limit("norms", TARN__NORM_WIDEST, "columns", y->cols) : NULL;
}

void tarn__cuda_residual_norm_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RESIDUAL_NORM].run = kernels[TARN__OP_NORM].run = forward_node;
}

// The gradients of residual sums and norms: one pass over the rows. Those of gain and bias are summed by each thread
// over the rows that it meets, then over the warps of a block, then over the blocks, whose number does not depend on
// the card.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/norm_rows.h"

// Blocks, at most: two for each multiprocessor of an H100.
constexpr int64_t PARTS = 264;

template <typename T>
struct backward_of {
  const T *dy, *dsum, *saved;
  const float *stats, *gain;
  T *dx, *dbranch;
  float *parts;  // NULL: nobody wants the gradients of gain and bias
  int64_t rows;
  int cols;
  tarn__mask mask;
  float skip, factor;
  tarn__norm_form form;
  bool add, whole;
};

// The sums of a block for gain and bias: columns of its warps in order, or all columns for the one gain of SCALE.
template <int WIDE, int E>
static __device__ __forceinline__ void write_parts(float *parts, const float dgain[E][TARN__EIGHT],
                                                   const float dbias[E][TARN__EIGHT], int cols, bool one, float factor,
                                                   float *shared) {
  if (one) {
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < E; e++)
      for (int i = 0; i < TARN__EIGHT; i++) sum += dgain[e][i];
    sum = tarn__block_sum(sum, shared);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum * factor;
    return;
  }
  parts += (int64_t)blockIdx.x * 2 * cols;
  float *to = WIDE == TARN__WARP_SIZE ? shared : parts;
  for (int w = 0; w < TARN__NORM_THREADS / WIDE; w++) {
    if ((int)threadIdx.x / WIDE == w) {
#pragma unroll
      for (int e = 0; e < E; e++) {
        const int c = tarn__norm_column<WIDE>(e);
        for (int i = 0; i < TARN__EIGHT; i++) {
          if (c + i >= cols) continue;
          to[c + i] = (w ? to[c + i] : 0.0f) + dgain[e][i];
          to[cols + c + i] = (w ? to[cols + c + i] : 0.0f) + dbias[e][i];
        }
      }
    }
    __syncthreads();
  }
  for (int c = (int)threadIdx.x; to == shared && c < 2 * cols; c += TARN__NORM_THREADS) parts[c] = shared[c];
}

template <typename T, int WIDE, int E>
static __global__ void __launch_bounds__(TARN__NORM_THREADS) residual_norm_backward_kernel(const backward_of<T> a) {
  TARN__SHARED(float, shared);
  const int each = TARN__NORM_THREADS / WIDE;
  const bool centred = a.form == TARN__NORM_LAYER, one = a.form == TARN__NORM_SCALE;
  const float share = 1.0f / (float)a.cols;
  float dgain[E][TARN__EIGHT] = {}, dbias[E][TARN__EIGHT] = {};
  for (int64_t row = (int64_t)blockIdx.x * each + threadIdx.x / WIDE; row < a.rows; row += (int64_t)gridDim.x * each) {
    const float mean = centred ? a.stats[2 * row] : 0.0f, rstd = a.stats[centred ? 2 * row + 1 : row];
    float dy[E][TARN__EIGHT], n[E][TARN__EIGHT], sum = 0.0f, sum_n = 0.0f;
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
      if (left <= 0) continue;
      tarn__read8(dy[e], a.dy + row * a.cols + c, left, a.whole);
      tarn__read8(n[e], a.saved + row * a.cols + c, left, a.whole);
    }
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
      if (left <= 0) continue;
      float g[TARN__EIGHT];
      tarn__read_gain(g, a.gain, a.factor, one, c, left, a.whole);
      for (int i = 0; i < TARN__EIGHT; i++) {
        n[e][i] = (n[e][i] - mean) * rstd;
        dgain[e][i] += dy[e][i] * n[e][i];
        dbias[e][i] += dy[e][i];
        dy[e][i] *= g[i];
        sum += dy[e][i];
        sum_n += dy[e][i] * n[e][i];
      }
    }
    if (!a.dx && !a.dbranch) continue;
    sum = centred ? tarn__row_sum<WIDE>(sum, shared) * share : 0.0f;
    sum_n = tarn__row_sum<WIDE>(sum_n, shared) * share;
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
      if (left <= 0) continue;
      const int64_t at = row * a.cols + c;
      float v[TARN__EIGHT] = {0}, before[TARN__EIGHT] = {0};
      if (a.dsum) tarn__read8(v, a.dsum + at, left, a.whole);
      for (int i = 0; i < TARN__EIGHT; i++) v[i] += rstd * (dy[e][i] - sum - n[e][i] * sum_n);
      if (a.add) tarn__read8(before, a.dx + at, left, a.whole);
      for (int i = 0; i < TARN__EIGHT; i++) before[i] += a.skip * v[i];
      if (a.dx) tarn__write8(a.dx + at, before, left, a.whole);
      if (!a.dbranch) continue;
      tarn__drop8(v, a.mask, row, c);
      tarn__write8(a.dbranch + at, v, left, a.whole);
    }
  }
  if (!a.parts) return;
  __syncthreads();
  write_parts<WIDE, E>(a.parts, dgain, dbias, a.cols, one, a.factor, shared);
}

static int64_t parts_of(int64_t rows, int64_t cols) {
  const int64_t each = cols <= 1024 ? TARN__NORM_THREADS / TARN__WARP_SIZE : 1, blocks = (rows + each - 1) / each;
  return blocks < PARTS ? blocks : PARTS;
}

template <typename T, int WIDE, int E>
static tarn_status launch_backward(const backward_of<T> &a, cudaStream_t stream) {
  const int64_t floats = 2 * (int64_t)a.cols;
  const size_t shared =
      (size_t)(WIDE > TARN__WARP_SIZE || floats < TARN__WARP_SIZE ? (int64_t)TARN__WARP_SIZE : floats);
  TARN__LAUNCH((residual_norm_backward_kernel<T, WIDE, E>), (unsigned)parts_of(a.rows, a.cols), TARN__NORM_THREADS,
               shared * sizeof(float), stream, a);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__RN_DY];
  const tarn__residual_norm_attr *attr = (const tarn__residual_norm_attr *)node->attr;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  int add_gain = 0, add_bias = 0;
  float *dgain = tarn__gradient_of(node->dparam[TARN__RN_DGAIN], &add_gain);
  float *dbias = tarn__gradient_of(node->dparam[TARN__RN_DBIAS], &add_bias);
  backward_of<T> a = {};
  a.dy = (const T *)dy->data;
  a.dsum = (const T *)tarn__data_of(node->in[TARN__RN_DSUM]);
  a.saved = (const T *)tarn__data_of(node->in[TARN__RN_SAVED]);
  a.stats = (const float *)tarn__data_of(node->in[TARN__RN_SAVED_STATS]);
  a.gain = (const float *)tarn__data_of(node->in[TARN__RN_SAVED_GAIN]);
  a.dx = (T *)tarn__data_of(node->out[TARN__RN_DX]);
  a.dbranch = (T *)tarn__data_of(node->out[TARN__RN_DBRANCH]);
  a.parts = dgain || dbias ? (float *)node->scratch : NULL;
  a.rows = dy->rows;
  a.cols = (int)dy->cols;
  a.mask = tarn__mask_of(attr->dropout, exec);
  a.skip = (float)attr->skip;
  a.factor = tarn__gain_factor(attr->form, dy->cols);
  a.form = attr->form;
  a.add = node->in[TARN__RN_PREVIOUS] != NULL;
  a.whole = tarn__whole_eights(dy->rows, dy->cols, a.dy, a.dsum, a.saved, a.dx, a.dbranch, a.gain);
  TARN_TRY(TARN__BY_WIDTH(launch_backward, T, dy->cols, a, stream));
  if (!a.parts) return TARN_STATUS_OK;
  const int64_t n = attr->form == TARN__NORM_SCALE ? 1 : dy->cols, stride = attr->form == TARN__NORM_SCALE ? 1 : 2 * n;
  return tarn__sum_parts(dgain, add_gain, dbias, add_bias, a.parts, parts_of(a.rows, a.cols), n, stride, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__RN_DY]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *dy = node->in[TARN__RN_DY];
  return (size_t)(parts_of(dy->rows, dy->cols) * 2 * dy->cols) * sizeof(float);
}

void tarn__cuda_norm_backward_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RESIDUAL_NORM_BACKWARD] = {backward_node, backward_scratch};
}

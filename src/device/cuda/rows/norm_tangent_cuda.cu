// The tangents of residual sums and norms, in fp32.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/norm_rows.h"

struct tangent_of {
  const float *dx, *dbranch, *saved, *stats, *gain;
  float *dsum, *dy;
  int64_t rows, period;  // period: rows of the forward pass
  int cols;
  tarn__mask mask;
  float skip, factor;
  tarn__norm_form form;
  bool whole;
};

// skip dx + mask dbranch.
static __device__ __forceinline__ void tangent8(float t[TARN__EIGHT], const tangent_of &a, int64_t row, int64_t column,
                                                int left) {
  const int64_t at = row * a.cols + column;
  float b[TARN__EIGHT] = {0};
  for (int i = 0; i < TARN__EIGHT; i++) t[i] = 0.0f;
  if (a.dx) tarn__read8(t, a.dx + at, left, a.whole);
  if (a.dbranch) {
    tarn__read8(b, a.dbranch + at, left, a.whole);
    tarn__drop8(b, a.mask, row % a.period, column);
  }
  for (int i = 0; i < TARN__EIGHT; i++) t[i] = a.skip * t[i] + b[i];
  if (a.dsum) tarn__write8(a.dsum + at, t, left, a.whole);
}

struct tangent_alone {
  tangent_of a;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float t[TARN__EIGHT];
    tangent8(t, a, row, column, left);
  }
};

template <int WIDE, int E>
static __global__ void __launch_bounds__(TARN__NORM_THREADS) residual_norm_tangent_kernel(const tangent_of a) {
  TARN__SHARED(float, shared);
  const int64_t row = (int64_t)blockIdx.x * (TARN__NORM_THREADS / WIDE) + threadIdx.x / WIDE;
  if (row >= a.rows) return;  // whole warps, or nobody
  const bool centred = a.form == TARN__NORM_LAYER;
  const int64_t own = row % a.period;
  const float mean = centred ? a.stats[2 * own] : 0.0f, rstd = a.stats[centred ? 2 * own + 1 : own];
  const float share = 1.0f / (float)a.cols;
  float t[E][TARN__EIGHT], n[E][TARN__EIGHT], sum = 0.0f, sum_n = 0.0f;
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
    if (left <= 0) continue;
    tangent8(t[e], a, row, c, left);
    tarn__read8(n[e], a.saved + own * a.cols + c, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) {
      n[e][i] = (n[e][i] - mean) * rstd;
      sum += t[e][i];
      sum_n += n[e][i] * t[e][i];
    }
  }
  sum = centred ? tarn__row_sum<WIDE>(sum, shared) * share : 0.0f;
  sum_n = tarn__row_sum<WIDE>(sum_n, shared) * share;
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int c = tarn__norm_column<WIDE>(e), left = a.cols - c;
    if (left <= 0) continue;
    float g[TARN__EIGHT];
    tarn__read_gain(g, a.gain, a.factor, a.form == TARN__NORM_SCALE, c, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) g[i] *= rstd * (t[e][i] - sum - n[e][i] * sum_n);
    tarn__write8(a.dy + row * a.cols + c, g, left, a.whole);
  }
}

template <int WIDE, int E>
static tarn_status launch_tangent(const tangent_of &a, cudaStream_t stream) {
  TARN__LAUNCH((residual_norm_tangent_kernel<WIDE, E>), tarn__blocks(a.rows, TARN__NORM_THREADS / WIDE),
               TARN__NORM_THREADS, TARN__WARP_SIZE * sizeof(float), stream, a);
  return TARN_STATUS_OK;
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->in[TARN__RN_TANGENT_X], *dbranch = node->in[TARN__RN_TANGENT_BRANCH];
  const tarn__tensor *saved = node->in[TARN__RN_TANGENT_SAVED];
  const tarn__residual_norm_attr *attr = (const tarn__residual_norm_attr *)node->attr;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  tangent_of a = {};
  a.dx = (const float *)tarn__data_of(dx);
  a.dbranch = (const float *)tarn__data_of(dbranch);
  a.saved = (const float *)saved->data;
  a.stats = (const float *)tarn__data_of(node->in[TARN__RN_TANGENT_STATS]);
  a.gain = (const float *)tarn__data_of(node->in[TARN__RN_TANGENT_GAIN]);
  a.dsum = (float *)tarn__data_of(node->out[TARN__RN_TANGENT_SUM]);
  a.dy = (float *)tarn__data_of(node->out[TARN__RN_TANGENT_Y]);
  a.rows = (dx ? dx : dbranch)->rows;
  a.period = saved->rows;
  a.cols = (int)saved->cols;
  a.mask = tarn__mask_of(attr->dropout, exec);
  a.skip = (float)attr->skip;
  a.factor = tarn__gain_factor(attr->form, saved->cols);
  a.form = attr->form;
  a.whole = tarn__whole_eights(a.rows, a.cols, a.dx, a.dbranch, a.saved, a.gain, a.dsum, a.dy);
  if (!a.dy) return tarn__each8(tangent_alone{a}, a.rows, a.cols, stream);
  if (a.cols <= 512) return launch_tangent<TARN__WARP_SIZE, 2>(a, stream);
  if (a.cols <= 1024) return launch_tangent<TARN__WARP_SIZE, 4>(a, stream);
  return launch_tangent<TARN__NORM_THREADS, 4>(a, stream);
}

void tarn__cuda_norm_tangent_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RESIDUAL_NORM_TANGENT].run = kernels[TARN__OP_NORM_TANGENT].run = tangent;
}

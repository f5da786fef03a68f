// Gradients of linear attention: those of features with 32 features a warp, those of values with 32 columns.
#include <type_traits>

#include "device/cuda/attention/linear_attention_cuda.h"

// What the backward pass knows of each row and head: [rows, heads].
template <typename T, typename P>
struct back {
  const T *dy, *y;
  const float *denominators;
  float *sum_gradient, *top;  // gD; the largest exponent of the query
  P *dphi;
  T *dvalues;  // from the first column of values on
  bool add;
};

// gD = -(dy . y) / D: a warp for each head of each row.
template <typename T>
static __global__ void linear_sum_gradient_kernel(float *gradient, const T *dy, const T *y, const float *denominators,
                                                  int64_t pairs, int64_t width) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / TARN__WARP_SIZE;
  float dot = 0.0f;
  for (int64_t c = lane; c < width && i < pairs; c += TARN__WARP_SIZE)
    dot += tarn__get(dy[i * width + c]) * tarn__get(y[i * width + c]);
  dot = tarn__warp_sum(dot);
  if (lane == 0 && i < pairs) gradient[i] = -dot / denominators[i];
}

// The largest exponents of queries, relative to the levels of the keys that they see.
template <typename T, typename P>
static __global__ void linear_tops_kernel(float *tops, tarn__linear<T, P> w) {
  TARN__SHARED(float, level);
  const int64_t s = blockIdx.x, h = blockIdx.y;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const tarn__linear_head<T, P> at = tarn__linear_head_of(w, s, h);
  for (int64_t f = lane; f < w.features; f += TARN__WARP_SIZE) {  // each lane reads and writes its own
    const bool empty = !at.start || at.start[w.features * w.width + f] == 0.0f;
    level[f] = empty ? -INFINITY : at.start[w.features * (w.width + 1) + f];
  }
  for (int64_t j = 0; j < (w.causal ? at.rows : 2 * at.rows); j++) {
    const int64_t i = w.causal ? j : j - at.rows;
    float top = -INFINITY;
    for (int64_t f = lane; f < w.features; f += TARN__WARP_SIZE) {
      if (j < at.rows) level[f] = fmaxf(level[f], tarn__get(at.k[j * w.phi_step + f]));
      if (i >= 0) top = fmaxf(top, tarn__get(at.q[i * w.phi_step + f]) + level[f]);
    }
    if (i < 0) continue;
    top = tarn__warp_max(top);
    if (lane == 0) tops[(at.first + i) * w.heads + h] = top;
  }
}

// A row of a head for all lanes.
template <typename T>
static __device__ __forceinline__ void share_row(float *to, const T *from, int64_t width) {
  __syncwarp();
  for (int64_t c = (int)threadIdx.x % TARN__WARP_SIZE; c < width; c += TARN__WARP_SIZE) to[c] = tarn__get(from[c]);
  __syncwarp();
}

// The sums of one feature, in one lane: s [width, 32].
typedef struct feature_sums {
  float *s, *row;  // row: of values or gradients
  float z, level;
} feature_sums;

static __device__ __forceinline__ void add_row(feature_sums *a, float factor, float x, int64_t width) {
  float *s = a->s + (int)threadIdx.x % TARN__WARP_SIZE;
  for (int64_t c = 0; c < width; c++) s[c * TARN__WARP_SIZE] = s[c * TARN__WARP_SIZE] * factor + x * a->row[c];
}

static __device__ __forceinline__ float dot_row(const feature_sums *a, int64_t width) {
  const float *s = a->s + (int)threadIdx.x % TARN__WARP_SIZE;
  float sum = 0.0f;
  for (int64_t c = 0; c < width; c++) sum += s[c * TARN__WARP_SIZE] * a->row[c];
  return sum;
}

// dphi of queries, along the sentence, with S and z of one feature.
template <typename T, typename P>
static __device__ void query_gradients(feature_sums *a, const tarn__linear<T, P> &w, const back<T, P> &b,
                                       const tarn__linear_head<T, P> &at, int64_t h, int64_t f) {
  const bool within = f < w.features;
  for (int64_t j = 0; j < (w.causal ? at.rows : 2 * at.rows); j++) {
    const int64_t i = w.causal ? j : j - at.rows;
    if (j < at.rows) {
      float k = within ? tarn__get(at.k[j * w.phi_step + f]) : 0.0f, factor = 1.0f;
      if (w.exponents) {
        factor = tarn__linear_rise(&a->level, k, a->z == 0.0f);
        k = expf(k - a->level);
      }
      a->z = a->z * factor + k;
      share_row(a->row, at.v + j * w.value_step, w.width);
      add_row(a, factor, k, w.width);
    }
    if (i < 0) continue;
    const int64_t of = (at.first + i) * w.heads + h;
    share_row(a->row, b.dy + of * w.width, w.width);
    float d = dot_row(a, w.width) / b.denominators[of] + b.sum_gradient[of] * a->z;
    if (!within) continue;
    if (w.exponents) d *= expf(tarn__get(at.q[i * w.phi_step + f]) + a->level - b.top[of]);
    tarn__set(b.dphi + (at.first + i) * w.phi_step + h * w.features + f, d);
  }
}

// dphi of keys, against the direction of the sentence, with U and u of one feature.
template <typename T, typename P>
static __device__ void key_gradients(feature_sums *a, const tarn__linear<T, P> &w, const back<T, P> &b,
                                     const tarn__linear_head<T, P> &at, int64_t h, int64_t f) {
  const bool within = f < w.features;
  for (int64_t n = w.causal ? at.rows : 2 * at.rows; n-- > 0;) {
    const int64_t i = w.causal ? n : n - at.rows;
    if (i >= 0) {
      const int64_t of = (at.first + i) * w.heads + h;
      float q = within ? tarn__get(at.q[i * w.phi_step + f]) : 0.0f, factor = 1.0f;
      if (w.exponents) {
        const float e = q - b.top[of], level = fmaxf(e, a->level);
        factor = expf(a->level - level);
        a->level = level;
        q = expf(e - level);
      }
      a->z = a->z * factor + b.sum_gradient[of] * q;
      share_row(a->row, b.dy + of * w.width, w.width);
      add_row(a, factor, q / b.denominators[of], w.width);
    }
    if (n >= at.rows) continue;
    share_row(a->row, at.v + n * w.value_step, w.width);
    float d = a->z + dot_row(a, w.width);
    if (!within) continue;
    if (w.exponents) d *= expf(tarn__get(at.k[n * w.phi_step + f]) + a->level);
    tarn__set(b.dphi + (at.first + n) * w.phi_step + (w.heads + h) * w.features + f, d);
  }
}

// Half of the blocks have queries, half keys.
template <typename T, typename P>
static __global__ void linear_dphi_kernel(tarn__linear<T, P> w, back<T, P> b, int64_t sentences) {
  TARN__SHARED(float, shared);
  const bool keys = (int64_t)blockIdx.x >= sentences;
  const int64_t s = blockIdx.x - (keys ? sentences : 0), h = blockIdx.y;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t f = (int64_t)blockIdx.z * TARN__WARP_SIZE + lane;
  const tarn__linear_head<T, P> at = tarn__linear_head_of(w, s, h);
  const float *start = f < w.features && !keys ? at.start : (const float *)nullptr;
  feature_sums a = {shared, shared + w.width * TARN__WARP_SIZE, 0.0f, keys ? -INFINITY : 0.0f};
  for (int64_t c = 0; c < w.width; c++) a.s[c * TARN__WARP_SIZE + lane] = start ? start[f * w.width + c] : 0.0f;
  if (start) a.z = start[w.features * w.width + f];
  if (start && w.exponents) a.level = start[w.features * (w.width + 1) + f];
  if (keys)
    key_gradients(&a, w, b, at, h, f);
  else
    query_gradients(&a, w, b, at, h, f);
}

// dv, against the direction of the sentence, with U of 32 columns.
template <typename T, typename P>
static __global__ void linear_dvalues_kernel(tarn__linear<T, P> w, back<T, P> b) {
  TARN__SHARED(float, shared);
  const int64_t s = blockIdx.x, h = blockIdx.y, m = w.features;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t c = (int64_t)blockIdx.z * TARN__WARP_SIZE + lane;
  const bool within = c < w.width;
  const tarn__linear_sums a = tarn__linear_sums_at(shared, m);
  const tarn__linear_head<T, P> at = tarn__linear_head_of(w, s, h);
  for (int64_t f = 0; f < m; f++) a.s[f * TARN__WARP_SIZE + lane] = 0.0f;
  for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) a.level[f] = -INFINITY;
  for (int64_t n = w.causal ? at.rows : 2 * at.rows; n-- > 0;) {
    const int64_t i = w.causal ? n : n - at.rows;
    if (i >= 0) {
      const int64_t of = (at.first + i) * w.heads + h;
      __syncwarp();
      for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) {
        float q = tarn__get(at.q[i * w.phi_step + f]), factor = 1.0f;
        if (w.exponents) {
          const float e = q - b.top[of], level = fmaxf(e, a.level[f]);
          factor = expf(a.level[f] - level);
          a.level[f] = level;
          q = expf(e - level);
        }
        a.query[f] = q;
        a.factor[f] = factor;
      }
      __syncwarp();
      const float g = within ? tarn__get(b.dy[of * w.width + c]) / b.denominators[of] : 0.0f;
      tarn__linear_add(a.s, a.factor, a.query, g, m);
    }
    if (n >= at.rows) continue;
    __syncwarp();
    for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) {
      const float k = tarn__get(at.k[n * w.phi_step + f]);
      a.key[f] = w.exponents ? expf(k + a.level[f]) : k;
    }
    __syncwarp();
    const float d = tarn__linear_dot(a.s, a.key, m);
    T *to = b.dvalues + (at.first + n) * w.value_step + h * w.width + c;
    if (within) tarn__set(to, b.add ? tarn__get(*to) + d : d);
  }
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *denominators = node->in[TARN__LINEAR_ATTENTION_BACK_DENOMINATORS];
  return (size_t)(2 * denominators->rows * denominators->cols) * sizeof(float);
}

// dvalues, whose other columns are zeros unless there is a gradient already.
template <typename T, typename P>
static tarn_status value_gradients(const tarn__node *node, const tarn__linear<T, P> &w, const back<T, P> &b,
                                   cudaStream_t stream) {
  const tarn__linear_attention_spec *spec = (const tarn__linear_attention_spec *)node->attr;
  const tarn__tensor *dvalues = node->out[TARN__LINEAR_ATTENTION_DVALUES];
  if (!b.add && dvalues->cols != w.heads * w.width)
    TARN__CUDA(cudaMemsetAsync(dvalues->data, 0, (size_t)(dvalues->rows * dvalues->cols) * sizeof(T), stream),
               "clearing a gradient");
  TARN__LAUNCH((linear_dvalues_kernel<T, P>), tarn__linear_blocks(node, spec, 1, w.width), TARN__WARP_SIZE,
               tarn__linear_bytes(w.features), stream, w, b);
  return TARN_STATUS_OK;
}

template <typename T, typename P>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_spec *spec = (const tarn__linear_attention_spec *)node->attr;
  const tarn__linear<T, P> w = tarn__linear_of<T, P>(node, spec);
  const tarn__tensor *y = node->in[TARN__LINEAR_ATTENTION_BACK_Y];
  const tarn__tensor *dphi = node->out[TARN__LINEAR_ATTENTION_DPHI];
  const tarn__tensor *dvalues = node->out[TARN__LINEAR_ATTENTION_DVALUES];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const int64_t pairs = y->rows * w.heads, sentences = node->in[TARN__LINEAR_ATTENTION_OFFSETS]->cols - 1;
  const back<T, P> b = {(const T *)node->in[TARN__LINEAR_ATTENTION_BACK_DY]->data,
                        (const T *)y->data,
                        (const float *)node->in[TARN__LINEAR_ATTENTION_BACK_DENOMINATORS]->data,
                        (float *)node->scratch,
                        (float *)node->scratch + pairs,
                        dphi ? (P *)dphi->data : (P *)nullptr,
                        dvalues ? (T *)dvalues->data + spec->value_column : (T *)nullptr,
                        node->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS] != NULL};
  if constexpr (std::is_same<P, float>::value) {  // exponents are in fp32
    if (w.exponents)
      TARN__LAUNCH((linear_tops_kernel<T, P>), dim3((unsigned)sentences, (unsigned)w.heads), TARN__WARP_SIZE,
                   (size_t)w.features * sizeof(float), stream, b.top, w);
  }
  if (dvalues) TARN_TRY((value_gradients<T, P>(node, w, b, stream)));
  if (!dphi) return TARN_STATUS_OK;
  TARN__LAUNCH(linear_sum_gradient_kernel<T>, tarn__blocks(pairs, 8), 256, 0, stream, b.sum_gradient, b.dy, b.y,
               b.denominators, pairs, w.width);
  TARN__LAUNCH((linear_dphi_kernel<T, P>), tarn__linear_blocks(node, spec, 2, w.features), TARN__WARP_SIZE,
               (size_t)(w.width * (TARN__WARP_SIZE + 1)) * sizeof(float), stream, w, b, sentences);
  return TARN_STATUS_OK;
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__LINEAR_BY_DTYPE(backward, exec, node);
}

void tarn__cuda_linear_attention_backward_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_LINEAR_ATTENTION_BACKWARD].run = backward_node;
  kernels[TARN__OP_LINEAR_ATTENTION_BACKWARD].scratch = scratch;
}

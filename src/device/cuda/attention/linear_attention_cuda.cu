// Linear attention and its tangents: a warp has 32 columns of a head of a sentence; and its single rows.
#include "device/cuda/attention/linear_attention_cuda.h"
#include "device/cuda/attention/linear_states.h"

extern "C" {
#include "graph/tangents.h"
}

// The state behind the last row.
template <typename T, typename P>
static __device__ void write_end(float *end, const tarn__linear_sums &a, const tarn__linear<T, P> &w, int64_t column) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t m = w.features;
  for (int64_t f = 0; f < m && column + lane < w.width; f++)
    end[f * w.width + column + lane] = a.s[f * TARN__WARP_SIZE + lane];
  for (int64_t f = lane; f < m && column == 0; f += TARN__WARP_SIZE) {
    end[m * w.width + f] = a.z[f];
    if (w.exponents) end[m * (w.width + 1) + f] = a.level[f];
  }
}

template <typename T, typename P>
static __global__ void linear_attention_kernel(T *y, float *denominators, float *end, tarn__linear<T, P> w) {
  TARN__SHARED(float, shared);
  const int64_t s = blockIdx.x, h = blockIdx.y, column = (int64_t)blockIdx.z * TARN__WARP_SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t c = column + lane;
  const bool within = c < w.width;
  const tarn__linear_sums a = tarn__linear_sums_at(shared, w.features);
  const tarn__linear_head<T, P> at = tarn__linear_head_of(w, s, h);
  tarn__linear_begin(a, w, at.start, column);
  for (int64_t j = 0; j < at.rows && !w.causal; j++)
    tarn__linear_take(a, w, at.k + j * w.phi_step, within ? tarn__get(at.v[j * w.value_step + c]) : 0.0f);
  for (int64_t i = 0; i < at.rows; i++) {
    if (w.causal) tarn__linear_take(a, w, at.k + i * w.phi_step, within ? tarn__get(at.v[i * w.value_step + c]) : 0.0f);
    const float sum = fmaxf(tarn__linear_ask(a, w, at.q + i * w.phi_step), TARN__LINEAR_ATTENTION_LEAST);
    const float result = tarn__linear_dot(a.s, a.query, w.features) / sum;
    if (within) tarn__set(y + ((at.first + i) * w.heads + h) * w.width + c, result);
    if (c == 0) denominators[(at.first + i) * w.heads + h] = sum;
  }
  if (end) write_end(end + (s * w.heads + h) * w.size, a, w, column);
}

// --- tangents

// What moves, of one direction; NULL: zero.
template <typename T, typename P>
struct directions {
  const P *phi;
  const T *values, *y;
  const float *denominators;
  int64_t rows, sentences;  // rows: of the forward pass
};

// Tangents of S and z, and of the present row's keys and queries.
typedef struct moved_sums {
  float *s, *z, *key, *query, *ones;
} moved_sums;

// Takes in row j and its tangents: dphi and dv, this lane's.
template <typename T, typename P>
static __device__ void take_both(const tarn__linear_sums &a, const moved_sums &b, const tarn__linear<T, P> &w,
                                 const P *keys, const P *dkeys, float v, float dv) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  tarn__linear_take(a, w, keys, v);
  for (int64_t f = lane; f < w.features; f += TARN__WARP_SIZE) {
    float dk = dkeys ? tarn__get(dkeys[f]) : 0.0f;
    if (w.exponents) dk *= a.key[f];
    b.key[f] = dk;
    b.z[f] = b.z[f] * a.factor[f] + dk;
  }
  __syncwarp();
  tarn__linear_add(b.s, a.factor, b.key, v, w.features);
  tarn__linear_add(b.s, b.ones, a.key, dv, w.features);
}

template <typename T, typename P>
static __global__ void linear_attention_tangent_kernel(T *dy, tarn__linear<T, P> w, directions<T, P> d) {
  TARN__SHARED(float, shared);
  const int64_t s = blockIdx.x % d.sentences, block = blockIdx.x / d.sentences * d.rows, h = blockIdx.y;
  const int64_t column = (int64_t)blockIdx.z * TARN__WARP_SIZE, m = w.features;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t c = column + lane;
  const bool within = c < w.width;
  const tarn__linear_sums a = tarn__linear_sums_at(shared, m);
  float *more = shared + m * TARN__LINEAR_SUMS, *z = more + m * TARN__WARP_SIZE;
  const moved_sums b = {more, z, z + m, z + 2 * m, z + 3 * m};
  const tarn__linear_head<T, P> at = tarn__linear_head_of(w, s, h);
  const int64_t first = block + at.first;
  const P *dq = d.phi ? d.phi + first * w.phi_step + h * m : (const P *)nullptr;
  const P *dk = dq ? dq + w.heads * m : (const P *)nullptr;
  const T *dv = d.values ? d.values + first * w.value_step + h * w.width : (const T *)nullptr;
  for (int64_t f = 0; f < m; f++) b.s[f * TARN__WARP_SIZE + lane] = 0.0f;
  for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) b.z[f] = 0.0f, b.ones[f] = 1.0f;
  tarn__linear_begin(a, w, at.start, column);
  // Keys before queries, or each query right behind its key.
  for (int64_t j = 0; j < (w.causal ? at.rows : 2 * at.rows); j++) {
    const int64_t i = w.causal ? j : j - at.rows;
    if (j < at.rows)
      take_both(a, b, w, at.k + j * w.phi_step, dk ? dk + j * w.phi_step : (const P *)nullptr,
                within ? tarn__get(at.v[j * w.value_step + c]) : 0.0f,
                within && dv ? tarn__get(dv[j * w.value_step + c]) : 0.0f);
    if (i < 0) continue;
    tarn__linear_ask(a, w, at.q + i * w.phi_step);
    float of_sum = 0.0f;
    for (int64_t f = lane; f < m; f += TARN__WARP_SIZE) {
      float q = dq ? tarn__get(dq[i * w.phi_step + f]) : 0.0f;
      if (w.exponents) q *= a.query[f];
      b.query[f] = q;
      of_sum += q * a.z[f] + a.query[f] * b.z[f];
    }
    of_sum = tarn__warp_sum(of_sum);
    __syncwarp();
    const float moved = tarn__linear_dot(a.s, b.query, m) + tarn__linear_dot(b.s, a.query, m);
    const int64_t to = (at.first + i) * w.heads + h;
    if (within)
      tarn__set(dy + (block * w.heads + to) * w.width + c,
                (moved - tarn__get(d.y[to * w.width + c]) * of_sum) / d.denominators[to]);
  }
}

// --- single rows: a block has a head of a row, and reads and writes its state once

typedef struct steps {
  float *cache;
  int64_t cols, first_row;
  const int32_t *list, *range;
} steps;

template <typename T, typename P>
static __global__ void linear_attention_rows_kernel(T *y, tarn__linear<T, P> w, steps at) {
  TARN__SHARED(float, shared);
  const int64_t i = blockIdx.x, h = blockIdx.y, m = w.features;
  float *key = shared, *factor = key + m, *query = key + 2 * m, *of_warps = key + 3 * m;
  const P *q = w.phi + i * w.phi_step + h * m, *k = q + w.heads * m;
  const int64_t last = at.range[2 * i + 1], before = last - at.range[2 * i] > 1 ? at.list[last - 2] : -1;
  const float *old = before < 0 ? (const float *)nullptr : at.cache + before * at.cols + h * w.size;
  float *state = at.cache + (at.first_row + i) * at.cols + h * w.size, *z = state + m * w.width, *level = z + m;
  float top = -INFINITY, sum = 0.0f;
  for (int64_t f = threadIdx.x; f < m; f += blockDim.x) {
    float x = tarn__get(k[f]), scale = 1.0f;
    const float so_far = old ? old[m * w.width + f] : 0.0f;
    if (w.exponents) {
      float to = old ? old[m * (w.width + 1) + f] : 0.0f;
      scale = tarn__linear_rise(&to, x, so_far == 0.0f);
      x = expf(x - to);
      level[f] = to;
      query[f] = tarn__get(q[f]) + to;
      top = fmaxf(top, query[f]);
    } else {
      query[f] = tarn__get(q[f]);
    }
    key[f] = x;
    factor[f] = scale;
    z[f] = so_far * scale + x;
  }
  if (w.exponents) top = tarn__block_max(top, of_warps);
  for (int64_t f = threadIdx.x; f < m; f += blockDim.x) {
    if (w.exponents) query[f] = expf(query[f] - top);
    sum += query[f] * z[f];
  }
  sum = fmaxf(tarn__block_sum(sum, of_warps), TARN__LINEAR_ATTENTION_LEAST);
  for (int64_t c = threadIdx.x; c < w.width; c += blockDim.x) {
    const float v = tarn__get(w.values[i * w.value_step + h * w.width + c]);
    float result = 0.0f;
    for (int64_t f = 0; f < m; f++) {
      const float now = (old ? old[f * w.width + c] : 0.0f) * factor[f] + key[f] * v;
      state[f * w.width + c] = now;
      result += query[f] * now;
    }
    tarn__set(y + (i * w.heads + h) * w.width + c, result / sum);
  }
}

// --- the host's side

static size_t tangent_bytes(int64_t features) {
  return (size_t)(features * (2 * TARN__LINEAR_SUMS - 1)) * sizeof(float);
}

static size_t rows_bytes(int64_t features) { return (size_t)(3 * features + TARN__WARP_SIZE) * sizeof(float); }

template <typename T, typename P>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_spec *spec = (const tarn__linear_attention_spec *)node->attr;
  const tarn__linear<T, P> w = tarn__linear_of<T, P>(node, spec);
  const tarn__tensor *end = node->in[TARN__LINEAR_ATTENTION_END];
  TARN__LAUNCH(
      (linear_attention_kernel<T, P>), tarn__linear_blocks(node, spec, 1, w.width), TARN__WARP_SIZE,
      tarn__linear_bytes(w.features), tarn__cuda_stream(exec->stream), (T *)node->out[TARN__LINEAR_ATTENTION_Y]->data,
      (float *)node->out[TARN__LINEAR_ATTENTION_DENOMINATORS]->data, end ? (float *)end->data : (float *)nullptr, w);
  return TARN_STATUS_OK;
}

template <typename T, typename P>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_spec *spec = (const tarn__linear_attention_spec *)node->attr;
  const tarn__linear<T, P> w = tarn__linear_of<T, P>(node, spec);
  const tarn__tensor *y = node->in[TARN__LINEAR_ATTENTION_TANGENT_Y];
  const tarn__tensor *dphi = node->in[TARN__LINEAR_ATTENTION_TANGENT_PHI];
  const tarn__tensor *dvalues = node->in[TARN__LINEAR_ATTENTION_TANGENT_VALUES];
  const int64_t count = tarn__tangent_directions(node->out[0], y->rows);
  const directions<T, P> d = {dphi ? (const P *)dphi->data : (const P *)nullptr,
                              dvalues ? (const T *)dvalues->data + spec->value_column : (const T *)nullptr,
                              (const T *)y->data,
                              (const float *)node->in[TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS]->data,
                              y->rows,
                              node->in[TARN__LINEAR_ATTENTION_OFFSETS]->cols - 1};
  TARN__LAUNCH((linear_attention_tangent_kernel<T, P>), tarn__linear_blocks(node, spec, count, w.width),
               TARN__WARP_SIZE, tangent_bytes(w.features), tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w,
               d);
  return TARN_STATUS_OK;
}

template <typename T, typename P>
static tarn_status rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_rows_attr *attr = (const tarn__linear_attention_rows_attr *)node->attr;
  const tarn__linear<T, P> w = tarn__linear_of<T, P>(node, &attr->spec);
  const tarn__tensor *cache = node->in[TARN__LINEAR_ATTENTION_CACHE];
  const steps at = {(float *)cache->data, cache->cols, attr->first_row,
                    (const int32_t *)node->in[TARN__LINEAR_ATTENTION_ROWS]->data,
                    (const int32_t *)node->in[TARN__LINEAR_ATTENTION_RANGES]->data};
  TARN__LAUNCH((linear_attention_rows_kernel<T, P>), dim3((unsigned)node->out[0]->rows, (unsigned)w.heads), 128,
               rows_bytes(w.features), tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w, at);
  return TARN_STATUS_OK;
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__LINEAR_BY_DTYPE(forward, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float, float>(exec, node);  // graphs with tangents are fp32
}

static tarn_status rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__LINEAR_BY_DTYPE(rows, exec, node);
}

// Sums of 32 columns, of all features; in the backward pass also of 32 features, of all columns.
const char *tarn__cuda_linear_attention_lacks(const tarn__node *node) {
  const int op = node->op->id;
  if (op == TARN__OP_LINEAR_ATTENTION_ROWS) {
    const tarn__linear_attention_rows_attr *attr = (const tarn__linear_attention_rows_attr *)node->attr;
    return tarn__cuda_at_most("heads", "features", attr->spec.features, rows_bytes);
  }
  const bool tangents = op == TARN__OP_LINEAR_ATTENTION_TANGENT, back = op == TARN__OP_LINEAR_ATTENTION_BACKWARD;
  if (!tangents && !back && op != TARN__OP_LINEAR_ATTENTION) return NULL;
  const tarn__linear_attention_spec *spec = (const tarn__linear_attention_spec *)node->attr;
  const char *lacks =
      tarn__cuda_at_most("heads", "features", spec->features, tangents ? tangent_bytes : tarn__linear_bytes);
  return lacks || !back ? lacks : tarn__cuda_at_most("heads", "columns", spec->width, tarn__linear_bytes);
}

void tarn__cuda_linear_attention_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_LINEAR_ATTENTION].run = forward_node;
  kernels[TARN__OP_LINEAR_ATTENTION_TANGENT].run = tangent_node;
  kernels[TARN__OP_LINEAR_ATTENTION_ROWS].run = rows_node;
  tarn__cuda_linear_attention_backward_entries(kernels);
}

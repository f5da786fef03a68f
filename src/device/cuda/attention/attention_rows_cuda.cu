// Incremental decoding: attention of single query rows to listed rows of a cache, and the cache.
#include "device/cuda/attention/attention_cuda.h"

extern "C" {
#include "ops/attention_rows.h"
#include "ops/cache.h"
}

// A block computes one query and head; its warps take 32 keys at a time, in turns, each with a softmax of its own,
// which are merged at the end in the order of warps.
enum { MOST_WARPS = 8, KEYS = TARN__WARP_SIZE };

typedef struct rows_shape {
  tarn__attention_shape at;  // offsets, rows and masks are not used
  const int32_t *list, *ranges;
  bool vectors;  // rows of keys and queries begin at multiples of 16 bytes, widths are whole vectors
} rows_shape;

// 16 bytes of a row as floats.
static __device__ __forceinline__ float vector_product(const float *x, const float *y) {
  const float4 b = *(const float4 *)(const void *)y;
  return x[0] * b.x + x[1] * b.y + x[2] * b.z + x[3] * b.w;
}
static __device__ __forceinline__ float vector_product(const float *x, const tarn__bf16 *y) {
  const uint4 b = *(const uint4 *)(const void *)y;
  const uint32_t pairs[4] = {b.x, b.y, b.z, b.w};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; i++)
    sum += x[2 * i] * __uint_as_float(pairs[i] << 16) + x[2 * i + 1] * __uint_as_float(pairs[i] & 0xFFFF0000u);
  return sum;
}

// Products of the query with 32 rows, into scores[32]: eight lanes a row, four rows at a time.
template <typename T>
static __device__ __forceinline__ void products(float *scores, const float *query, const T *keys, const int *rows,
                                                const rows_shape &shape, int count) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, eighth = lane % 8, width = shape.at.width;
  constexpr int VECTOR = 16 / (int)sizeof(T);
  for (int j = lane / 8; j < KEYS; j += TARN__WARP_SIZE / 8) {
    const T *key = keys + (int64_t)rows[j] * shape.at.key_pitch;
    float sum = 0.0f;
    if (j < count && shape.vectors)
      for (int c = eighth * VECTOR; c < width; c += 8 * VECTOR) sum += vector_product(query + c, key + c);
    else if (j < count)
      for (int c = eighth; c < width; c += 8) sum += query[c] * tarn__get(key[c]);
    for (int n = 4; n > 0; n /= 2) sum += __shfl_xor_sync(TARN__WARP, sum, n);
    if (eighth == 0) scores[j] = sum;
  }
}

// What is kept of a warp's keys: the largest score, the sum of powers, and in `out` the sum of values.
typedef struct part {
  float most, sum;
} part;

template <typename T>
static __device__ __forceinline__ part attend(float *out, float *scores, int *rows, const float *query,
                                              const rows_shape &shape, const T *keys, const T *values, int first,
                                              int count, int head) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const float slope = tarn__attention_slope(shape.at, head);
  const float *biases =
      shape.at.biases ? shape.at.biases + head * (int64_t)(2 * shape.at.reach + 1) + shape.at.reach : nullptr;
  part so_far = {-INFINITY, 0.0f};
  for (int j = warp * KEYS; j < count; j += (int)blockDim.x) {
    const int n = min(KEYS, count - j), before = count - 1 - j - lane;
    __syncwarp();
    rows[lane] = lane >= n ? 0 : shape.list ? shape.list[first + j + lane] : first + j + lane;
    __syncwarp();
    products(scores, query, keys, rows, shape, n);
    __syncwarp();
    float s = -INFINITY;
    if (lane < n) {
      s = scores[lane] * shape.at.scale * 1.4426950408889634f - slope * (float)before;
      if (biases) s += 1.4426950408889634f * biases[-min(before, shape.at.reach)];
    }
    const float most = fmaxf(so_far.most, tarn__warp_max(s)), factor = exp2f(so_far.most - most), p = exp2f(s - most);
    so_far.most = most;
    so_far.sum = so_far.sum * factor + tarn__warp_sum(p);
    __syncwarp();
    scores[lane] = p;
    __syncwarp();
    for (int c = lane; c < shape.at.width; c += TARN__WARP_SIZE) {
      float sum = out[c] * factor;
#pragma unroll 4
      for (int i = 0; i < n; i++) sum += scores[i] * tarn__get(values[(int64_t)rows[i] * shape.at.key_pitch + c]);
      out[c] = sum;
    }
  }
  return so_far;
}

template <typename T>
static __global__ void attention_rows_kernel(rows_shape shape, const T *queries, const T *keys_values, T *result) {
  TARN__SHARED(float, query);
  const int width = shape.at.width, lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int warp = (int)threadIdx.x / TARN__WARP_SIZE, warps = (int)blockDim.x / TARN__WARP_SIZE;
  float *const outs = query + width, *const scores = outs + warps * width, *const parts = scores + warps * KEYS;
  int *const rows = (int *)(void *)(parts + 2 * MOST_WARPS) + warp * KEYS;
  const int64_t i = blockIdx.x;
  const int head = (int)blockIdx.y, first = shape.ranges[2 * i], count = shape.ranges[2 * i + 1] - first;
  const T *q = queries + i * shape.at.query_pitch + shape.at.query_column + (int64_t)head * width;
  const T *k = keys_values + shape.at.key_column + (int64_t)(head / shape.at.group) * width;
  const T *v = keys_values + shape.at.value_column + (int64_t)(head / shape.at.group) * width;
  for (int c = (int)threadIdx.x; c < width; c += (int)blockDim.x) query[c] = tarn__get(q[c]);
  for (int c = lane; c < width; c += TARN__WARP_SIZE) outs[warp * width + c] = 0.0f;
  __syncthreads();
  const part mine = attend(outs + warp * width, scores + warp * KEYS, rows, query, shape, k, v, first, count, head);
  if (lane == 0) {
    parts[2 * warp] = mine.most;
    parts[2 * warp + 1] = mine.sum;
  }
  __syncthreads();
  float most = -INFINITY, sum = 0.0f, factor[MOST_WARPS];
  for (int w = 0; w < warps; w++) most = fmaxf(most, parts[2 * w]);
#pragma unroll
  for (int w = 0; w < MOST_WARPS; w++) {
    factor[w] = w < warps && parts[2 * w] > -INFINITY ? exp2f(parts[2 * w] - most) : 0.0f;
    if (w < warps) sum += factor[w] * parts[2 * w + 1];
  }
  for (int c = (int)threadIdx.x; c < width; c += (int)blockDim.x) {
    float all = 0.0f;
#pragma unroll
    for (int w = 0; w < MOST_WARPS; w++)
      if (w < warps) all += factor[w] * outs[w * width + c];
    tarn__set(result + i * shape.at.d + (int64_t)head * width + c, sum > 0.0f ? all / sum : 0.0f);
  }
}

static int warps_for(int64_t longest) {
  return longest >= MOST_WARPS * KEYS ? (int)MOST_WARPS : longest > KEYS ? (int)(longest + KEYS - 1) / KEYS : 1;
}

static size_t room_of(int warps, int64_t width) {
  return ((size_t)(1 + warps) * (size_t)width + (size_t)(2 * warps * KEYS) + 2 * MOST_WARPS) * sizeof(float);
}

template <typename T>
static tarn_status attention_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_rows_attr *attr = (const tarn__attention_rows_attr *)node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES];
  const tarn__tensor *kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES], *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const tarn__tensor *biases = node->in[TARN__ATTENTION_ROWS_BIASES];
  constexpr int VECTOR = 16 / (int)sizeof(T);
  rows_shape shape = {};
  shape.at.heads = spec->heads;
  shape.at.group = spec->heads / (int)attr->kv_heads;
  shape.at.width = (int)(spec->d / spec->heads);
  shape.at.query_pitch = queries->cols;
  shape.at.key_pitch = kv->cols;
  shape.at.d = spec->d;
  shape.at.query_column = spec->query_column;
  shape.at.key_column = spec->key_column;
  shape.at.value_column = spec->value_column;
  shape.at.scale = (float)(1.0 / sqrt((double)shape.at.width));
  shape.at.alibi = (float)spec->alibi;
  shape.at.power = 1;
  while (2 * shape.at.power <= spec->heads) shape.at.power *= 2;
  shape.at.reach = (int)attr->reach;
  shape.at.biases = biases ? (const float *)biases->data : nullptr;
  shape.list = list ? (const int32_t *)list->data : nullptr;
  shape.ranges = (const int32_t *)node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  shape.vectors =
      shape.at.width % VECTOR == 0 && (kv->cols | spec->key_column) % VECTOR == 0 && (uintptr_t)kv->data % 16 == 0;
  const int warps = warps_for(spec->longest);
  TARN__LAUNCH(attention_rows_kernel<T>, dim3((unsigned)queries->rows, (unsigned)spec->heads), warps * TARN__WARP_SIZE,
               room_of(warps, shape.at.width), tarn__cuda_stream(exec->stream), shape, (const T *)queries->data,
               (const T *)kv->data, (T *)node->out[0]->data);
  return TARN_STATUS_OK;
}

static tarn_status attention_rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(attention_rows, node->out[0]->dtype, exec, node);
}

// --- the cache: units of 16 bytes, or elements where rows do not begin at multiples of that

template <typename U>
static __global__ void cache_append_kernel(U *cache, int64_t cache_pitch, const U *x, int64_t x_pitch, int64_t rows,
                                           int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) cache[i / cols * cache_pitch + i % cols] = x[i / cols * x_pitch + i % cols];
}

// Copies `rows` rows in units of U; all numbers are in bytes.
template <typename U>
static tarn_status append(char *to, int64_t to_pitch, const char *from, int64_t from_pitch, int64_t rows, int64_t bytes,
                          cudaStream_t stream) {
  const int64_t size = sizeof(U);
  TARN__LAUNCH(cache_append_kernel<U>, tarn__blocks(rows * bytes / size, 256), 256, 0, stream, (U *)(void *)to,
               to_pitch / size, (const U *)(const void *)from, from_pitch / size, rows, bytes / size);
  return TARN_STATUS_OK;
}

static tarn_status cache_append(const tarn__exec *exec, const tarn__node *node) {
  const tarn__cache_attr *attr = (const tarn__cache_attr *)node->attr;
  const tarn__tensor *x = node->in[TARN__CACHE_X], *cache = node->in[TARN__CACHE_CACHE];
  const int64_t size = (int64_t)tarn__dtype_size(cache->dtype), bytes = attr->cols * size;
  const int64_t to_pitch = cache->cols * size, from_pitch = x->cols * size;
  char *to = (char *)cache->data + attr->first_row * to_pitch + attr->to * size;
  const char *from = (const char *)x->data + attr->column * size;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const int64_t all = (int64_t)((uintptr_t)to | (uintptr_t)from) | to_pitch | from_pitch | bytes;
  if (all % 16 == 0) return append<uint4>(to, to_pitch, from, from_pitch, x->rows, bytes, stream);
  if (all % 4 == 0) return append<uint32_t>(to, to_pitch, from, from_pitch, x->rows, bytes, stream);
  return append<uint16_t>(to, to_pitch, from, from_pitch, x->rows, bytes, stream);
}

const char *tarn__cuda_attention_rows_lacks(const tarn__node *node) {
  if (node->op->id != TARN__OP_ATTENTION_ROWS) return nullptr;
  const tarn__attention_spec *spec = &((const tarn__attention_rows_attr *)node->attr)->spec;
  const int warps = warps_for(spec->longest);
  return tarn__cuda_at_most("heads", "columns", spec->d / spec->heads,
                            [&](int64_t width) { return room_of(warps, width); });
}

void tarn__cuda_attention_rows_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ATTENTION_ROWS].run = attention_rows_node;
  kernels[TARN__OP_CACHE_APPEND].run = cache_append;
}

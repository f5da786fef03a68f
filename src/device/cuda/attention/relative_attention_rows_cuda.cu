// Single rows of attention with relative keys and values: a block has a head of a row, and each warp of it every fourth
// 32 keys. What the warps have found is put together at the end, in their order.
#include "device/cuda/attention/relative_attention.h"

extern "C" {
#include "ops/attention_rows.h"
}

static const int WARPS = 4;

template <typename T>
struct single {
  const T *queries, *keys, *values, *key_table, *value_table;  // tables: at distance 0, NULL: none
  int64_t query_step, key_step, reach, heads, group, width;
  const int32_t *list, *range;  // list NULL: the range itself names rows
  bool fp32;                    // tables
  float scale;
};

// The vector for the key `before` places before the query.
template <typename T>
static __device__ __forceinline__ float near_of(const single<T> &w, const T *table, int64_t before, int64_t c) {
  if (!table) return 0.0f;
  return tarn__pair_get(table, -(before < w.reach ? before : w.reach) * w.width + c, w.fp32);
}

// The result of head h of row i from what each warp has: its largest score, its sum, and its sums of values.
template <typename T>
static __device__ void put_together(T *y, const float *sums, const float *most, const float *sum, const single<T> &w) {
  float top = most[0], total = 0.0f, share[WARPS];
  for (int k = 1; k < WARPS; k++) top = fmaxf(top, most[k]);
  TARN__UNROLL
  for (int k = 0; k < WARPS; k++) {
    share[k] = most[k] == -INFINITY ? 0.0f : expf(most[k] - top);
    total += share[k] * sum[k];
  }
  for (int64_t c = threadIdx.x; c < w.width; c += blockDim.x) {
    float result = 0.0f;
    TARN__UNROLL
    for (int k = 0; k < WARPS; k++) result += share[k] * sums[k * w.width + c];
    tarn__set(y + c, result / total);
  }
}

template <typename T>
static __global__ void relative_attention_rows_kernel(T *y, single<T> w) {
  TARN__SHARED(float, shared);
  const int64_t i = blockIdx.x, h = blockIdx.y, first = w.range[2 * i], count = w.range[2 * i + 1] - first;
  const int lane = tarn__pair_lane(), warp = tarn__pair_warp();
  float *query = shared, *all_sums = query + w.width, *most = all_sums + WARPS * w.width, *sum = most + WARPS;
  float *sums = all_sums + warp * w.width;  // each column is one lane's
  const T *q = w.queries + i * w.query_step + h * w.width, *k = w.keys + h / w.group * w.width;
  const T *v = w.values + h / w.group * w.width;
  tarn__pair_softmax softmax = tarn__pair_softmax_begin();
  for (int64_t c = threadIdx.x; c < w.width; c += blockDim.x) query[c] = tarn__get(q[c]) * w.scale;
  for (int64_t c = lane; c < w.width; c += TARN__WARP_SIZE) sums[c] = 0.0f;
  __syncthreads();
  for (int64_t j0 = warp * TARN__WARP_SIZE; j0 < count; j0 += WARPS * TARN__WARP_SIZE) {
    const int64_t j = j0 + lane, before = count - 1 - j;
    const bool sees = j < count;
    const int64_t row = !sees ? 0 : w.list ? w.list[first + j] : first + j;
    float score = 0.0f, factor;
    for (int64_t c = 0; c < w.width && sees; c++)
      score += query[c] * (tarn__get(k[row * w.key_step + c]) + near_of(w, w.key_table, before, c));
    const float e = tarn__pair_softmax_take(&softmax, sees ? score : -INFINITY, &factor);
    const int keys = count - j0 < TARN__WARP_SIZE ? (int)(count - j0) : TARN__WARP_SIZE;
    for (int64_t c0 = 0; c0 < w.width; c0 += TARN__WARP_SIZE) {
      const int64_t c = c0 + lane;
      float added = 0.0f;
      for (int n = 0; n < keys; n++) {
        const float weight = __shfl_sync(TARN__WARP, e, n);
        const int64_t from = __shfl_sync(TARN__WARP, row, n);
        if (c < w.width)
          added += weight * (tarn__get(v[from * w.key_step + c]) + near_of(w, w.value_table, count - 1 - j0 - n, c));
      }
      if (c < w.width) sums[c] = sums[c] * factor + added;
    }
  }
  softmax.sum = tarn__warp_sum(softmax.sum);
  if (lane == 0) most[warp] = softmax.most, sum[warp] = softmax.sum;
  __syncthreads();
  put_together(y + (i * w.heads + h) * w.width, all_sums, most, sum, w);
}

template <typename T>
static tarn_status rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_rows_attr *attr = (const tarn__attention_rows_attr *)node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES],
                     *kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES];
  const tarn__tensor *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const tarn__tensor *key_table = node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS];
  const tarn__tensor *value_table = node->in[TARN__ATTENTION_ROWS_RELATIVE_VALUES];
  single<T> w = {};
  w.width = spec->d / spec->heads;
  w.reach = key_table->rows / 2;
  w.fp32 = key_table->dtype == TARN__F32;
  const size_t zero = (size_t)(w.reach * w.width) * tarn__dtype_size(key_table->dtype);
  w.queries = (const T *)queries->data + spec->query_column;
  w.keys = (const T *)kv->data + spec->key_column;
  w.values = (const T *)kv->data + spec->value_column;
  w.key_table = (const T *)((const char *)key_table->data + zero);
  if (value_table) w.value_table = (const T *)((const char *)value_table->data + zero);
  w.query_step = queries->cols;
  w.key_step = kv->cols;
  w.heads = spec->heads;
  w.group = spec->heads / attr->kv_heads;
  w.list = list ? (const int32_t *)list->data : (const int32_t *)nullptr;
  w.range = (const int32_t *)node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  w.scale = (float)(1.0 / sqrt((double)w.width));
  TARN__LAUNCH(relative_attention_rows_kernel<T>, dim3((unsigned)queries->rows, (unsigned)w.heads),
               WARPS * TARN__WARP_SIZE, (size_t)((WARPS + 1) * w.width + 2 * WARPS) * sizeof(float),
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w);
  return TARN_STATUS_OK;
}

static tarn_status rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(rows, node->out[0]->dtype, exec, node);
}

void tarn__cuda_relative_rows_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RELATIVE_ATTENTION_ROWS].run = rows_node;
}

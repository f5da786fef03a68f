// Single rows of attention with relative keys and values.
#include "device/cuda/attention/relative_attention_cuda.h"
#include "device/cuda/attention/single_rows.h"

extern "C" {
#include "ops/attention_rows.h"
}

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

template <typename T>
static __global__ void relative_attention_rows_kernel(T *y, single<T> w) {
  TARN__SHARED(float, shared);
  const int64_t i = blockIdx.x, h = blockIdx.y, first = w.range[2 * i], count = w.range[2 * i + 1] - first;
  float *query = shared + TARN__SINGLE_WARPS * (w.width + 2);
  const T *q = w.queries + i * w.query_step + h * w.width, *k = w.keys + h / w.group * w.width;
  const T *v = w.values + h / w.group * w.width;
  for (int64_t c = threadIdx.x; c < w.width; c += blockDim.x) query[c] = tarn__get(q[c]) * w.scale;
  __syncthreads();
  const auto row = [&](int64_t j) { return (w.list ? w.list[first + j] : first + j) * w.key_step; };
  tarn__single_row(
      y + (i * w.heads + h) * w.width, count, w.width,
      [&](int64_t j) {
        const T *key = k + row(j);
        float score = 0.0f;
        for (int64_t c = 0; c < w.width; c++)
          score += query[c] * (tarn__get(key[c]) + near_of(w, w.key_table, count - 1 - j, c));
        return score;
      },
      [&](int64_t j, int64_t c) { return tarn__get(v[row(j) + c]) + near_of(w, w.value_table, count - 1 - j, c); },
      shared);
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
               TARN__SINGLE_WARPS * TARN__WARP_SIZE, (tarn__single_floats(w.width) + (size_t)w.width) * sizeof(float),
               tarn__cuda_stream(exec->stream), (T *)node->out[0]->data, w);
  return TARN_STATUS_OK;
}

static tarn_status rows_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(rows, node->out[0]->dtype, exec, node);
}

void tarn__cuda_relative_rows_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RELATIVE_ATTENTION_ROWS].run = rows_node;
}

// The nodes of attention: which kernels compute them, with what arguments and scratch.
#include "device/cuda/attention/attention_cuda.h"

#include "device/cuda/attention/attention_plain_cuda.h"

extern "C" {
#include "graph/tangents.h"
}

static tarn__attention_shape shape_of(const tarn__attention_attr *attr, const tarn__tensor *queries,
                                      const tarn__tensor *keys_values, const tarn__tensor *query_offsets,
                                      const tarn__tensor *key_offsets, const tarn__tensor *biases,
                                      const tarn__exec *exec) {
  const tarn__attention_spec *spec = &attr->spec;
  tarn__attention_shape shape = {};
  shape.query_offsets = (const int32_t *)query_offsets->data;
  shape.key_offsets = (const int32_t *)key_offsets->data;
  shape.sequences = (int)query_offsets->cols - 1;
  shape.heads = spec->heads;
  shape.group = spec->heads / (int)attr->kv_heads;
  shape.width = (int)(spec->d / spec->heads);
  shape.causal = spec->causal != 0;
  shape.query_rows = queries->rows;
  shape.key_rows = keys_values->rows;
  shape.query_pitch = queries->cols;
  shape.key_pitch = keys_values->cols;
  shape.d = spec->d;
  shape.query_column = spec->query_column;
  shape.key_column = spec->key_column;
  shape.value_column = spec->value_column;
  shape.scale = (float)(1.0 / sqrt((double)shape.width));
  shape.alibi = (float)spec->alibi;
  shape.power = 1;
  while (2 * shape.power <= spec->heads) shape.power *= 2;
  shape.reach = (int)attr->reach;
  shape.biases = biases ? (const float *)biases->data : nullptr;
  if (exec) shape.mask = tarn__mask_of(attr->dropout, exec);
  return shape;
}

static tarn__attention_shape node_shape(const tarn__node *node, const tarn__exec *exec) {
  return shape_of((const tarn__attention_attr *)node->attr, node->in[TARN__ATTENTION_QUERIES],
                  node->in[TARN__ATTENTION_KEYS_VALUES], node->in[TARN__ATTENTION_QUERY_OFFSETS],
                  node->in[TARN__ATTENTION_KEY_OFFSETS], node->in[TARN__ATTENTION_BIASES], exec);
}

static tarn_status attention(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_shape shape = node_shape(node, exec);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const void *queries = node->in[TARN__ATTENTION_QUERIES]->data, *keys = node->in[TARN__ATTENTION_KEYS_VALUES]->data;
  void *result = node->out[TARN__ATTENTION_RESULT]->data;
  const tarn__tensor *statistics = node->out[TARN__ATTENTION_STATISTICS];
  if (node->out[0]->dtype != TARN__BF16)
    return tarn__attention_plain(shape, (const float *)queries, (const float *)keys, (float *)result, stream);
  if (!tarn__attention_mma_fits(&shape))
    return tarn__attention_plain(shape, (const tarn__bf16 *)queries, (const tarn__bf16 *)keys, (tarn__bf16 *)result,
                                 stream);
  return tarn__attention_mma(shape, (const tarn__bf16 *)queries, (const tarn__bf16 *)keys, (tarn__bf16 *)result,
                             statistics ? (float *)statistics->data : nullptr, stream);
}

static tarn__attention_shape backward_shape(const tarn__node *node, const tarn__attention_backward *b,
                                            const tarn__exec *exec) {
  return shape_of((const tarn__attention_attr *)node->attr, b->queries, b->keys_values,
                  node->in[TARN__ATTENTION_QUERY_OFFSETS], tarn__attention_key_offsets(node), b->biases, exec);
}

// --- scratch of the backward pass: numbers of rows, gradients of queries that take the place of queries, sums of
// biases

typedef struct places {
  size_t numbers, queries, sums, bytes;  // numbers begin at 0
} places;

static size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

static places places_of(const tarn__attention_shape *shape, const tarn__attention_backward *b, bool in_place) {
  places at = {};
  if (b->dkeys_values) at.bytes = aligned(3 * (size_t)shape->heads * (size_t)shape->query_rows * sizeof(float));
  at.queries = at.bytes;
  if (in_place) at.bytes += aligned((size_t)shape->query_rows * (size_t)shape->d * tarn__dtype_size(b->queries->dtype));
  at.sums = at.bytes;
  if (b->dbiases)
    at.bytes += (size_t)tarn__attention_slots(shape->query_rows, shape->sequences, tarn__plain_rows(shape->width)) *
                (size_t)shape->heads * (size_t)(2 * shape->reach + 1) * sizeof(float);
  return at;
}

static const tarn__tensor *owner_of(const tarn__tensor *tensor) {
  while (tensor->shares) tensor = tensor->shares;
  return tensor;
}

// Whether the gradient of queries lies where the queries are, and the second pass reads them there.
static bool is_in_place(const tarn__attention_backward *b) {
  return b->dqueries && b->dkeys_values && owner_of(b->dqueries) == owner_of(b->queries);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const tarn__attention_shape shape = backward_shape(node, &b, nullptr);
  return places_of(&shape, &b, is_in_place(&b)).bytes;
}

// --- what remains after both passes

// Gradients of queries from scratch memory to their place; whole blocks of 256.
template <typename T>
static __global__ void attention_place_kernel(T *to, int64_t pitch, const T *from, int64_t rows, int64_t d) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * d) to[i / d * pitch + i % d] = from[i];
}

// Columns of a gradient, [rows, cols], that are in none of the ranges [begin[i], end[i]).
typedef struct ranges {
  int64_t begin[3], end[3];
  int count;
} ranges;
template <typename T>
static __global__ void attention_zero_kernel(T *to, int64_t rows, int64_t cols, ranges written) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, column = i % cols;
  if (i >= rows * cols) return;
  bool is = false;
  for (int r = 0; r < written.count; r++) is |= column >= written.begin[r] && column < written.end[r];
  if (!is) tarn__set(to + i, 0.0f);
}

template <typename T>
static tarn_status zero_others(const tarn__tensor *to, const ranges &written, cudaStream_t stream) {
  int64_t columns = 0;
  for (int r = 0; r < written.count; r++) columns += written.end[r] - written.begin[r];
  if (columns >= to->cols) return TARN_STATUS_OK;  // ranges that overlap would leave others too, but nobody has them
  TARN__LAUNCH(attention_zero_kernel<T>, tarn__blocks(to->rows * to->cols, 256), 256, 0, stream, (T *)to->data,
               to->rows, to->cols, written);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status zero_unwritten(const tarn__attention_attr *attr, const tarn__attention_backward *b,
                                  cudaStream_t stream) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t kv = tarn__attention_kv_width(attr), q = spec->query_column, k = spec->key_column,
                v = spec->value_column;
  const bool one = b->dqueries == b->dkeys_values;
  const ranges queries = {{q, k, v}, {q + spec->d, k + kv, v + kv}, one ? 3 : 1};
  const ranges keys = {{k, v, 0}, {k + kv, v + kv, 0}, 2};
  if (b->dqueries && !b->add_queries) TARN_TRY(zero_others<T>(b->dqueries, queries, stream));
  if (b->dkeys_values && !one && !b->add_keys_values) TARN_TRY(zero_others<T>(b->dkeys_values, keys, stream));
  return TARN_STATUS_OK;
}

static tarn_status both_passes(const tarn__attention_shape &shape, const tarn__attention_gradients<float> &to,
                               cudaStream_t stream) {
  return tarn__attention_plain_backward(shape, to, stream);
}
static tarn_status both_passes(const tarn__attention_shape &shape, const tarn__attention_gradients<tarn__bf16> &to,
                               cudaStream_t stream) {
  if (tarn__attention_mma_fits(&shape)) return tarn__attention_mma_backward(shape, to, stream);
  return tarn__attention_plain_backward(shape, to, stream);
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const tarn__attention_shape shape = backward_shape(node, &b, exec);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const bool in_place = is_in_place(&b);
  const places at = places_of(&shape, &b, in_place);
  char *scratch = (char *)node->scratch;
  tarn__attention_gradients<T> to = {};
  to.queries = (const T *)b.queries->data;
  to.keys_values = (const T *)b.keys_values->data;
  to.dout = (const T *)b.dout->data;
  to.result = b.statistics ? (const T *)b.result->data : nullptr;
  to.statistics = b.statistics ? (const float *)b.statistics->data : nullptr;
  to.dqueries = in_place ? (T *)(void *)(scratch + at.queries) : b.dqueries ? (T *)b.dqueries->data : nullptr;
  to.dquery_pitch = in_place || !b.dqueries ? shape.d : b.dqueries->cols;
  to.dquery_column = in_place ? 0 : shape.query_column;
  to.add_queries = b.add_queries && !in_place;
  to.dkeys_values = b.dkeys_values ? (T *)b.dkeys_values->data : nullptr;
  to.add_keys_values = b.add_keys_values;
  to.rows = (float *)(void *)scratch;
  to.dbiases = b.dbiases ? (float *)b.dbiases->data : nullptr;
  to.bias_sums = (float *)(void *)(scratch + at.sums);
  TARN_TRY(both_passes(shape, to, stream));
  if (in_place)
    TARN__LAUNCH(attention_place_kernel<T>, tarn__blocks(shape.query_rows * shape.d, 256), 256, 0, stream,
                 (T *)b.dqueries->data + shape.query_column, b.dqueries->cols, (const T *)to.dqueries, shape.query_rows,
                 shape.d);
  return zero_unwritten<T>((const tarn__attention_attr *)node->attr, &b, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__ATTENTION_QUERIES]->dtype, exec, node);
}

template <typename T>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_shape shape = node_shape(node, exec);
  const tarn__tensor *dqueries = node->in[TARN__ATTENTION_TANGENT_QUERIES];
  const tarn__tensor *dkeys_values = node->in[TARN__ATTENTION_TANGENT_KEYS_VALUES];
  const int64_t directions = tarn__tangent_directions(node->out[0], shape.query_rows);
  return tarn__attention_plain_tangent(
      shape, (const T *)node->in[TARN__ATTENTION_QUERIES]->data, (const T *)node->in[TARN__ATTENTION_KEYS_VALUES]->data,
      dqueries ? (const T *)dqueries->data : nullptr, dkeys_values ? (const T *)dkeys_values->data : nullptr,
      (T *)node->out[0]->data, (int)directions, tarn__cuda_stream(exec->stream));
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent<float>(exec, node);  // graphs with tangents are fp32
}

// Heads that tensor cores take are narrower.
const char *tarn__cuda_attention_lacks(const tarn__node *node) {
  const int op = node->op->id;
  const tarn__attention_way pass = op == TARN__OP_ATTENTION_BACKWARD  ? TARN__ATTENTION_BACK
                                   : op == TARN__OP_ATTENTION_TANGENT ? TARN__ATTENTION_MOVED
                                                                      : TARN__ATTENTION_FORWARD;
  if (op != TARN__OP_ATTENTION && pass == TARN__ATTENTION_FORWARD) return nullptr;
  const tarn__attention_spec *spec = (const tarn__attention_spec *)node->attr;
  return tarn__cuda_at_most("heads", "columns", spec->d / spec->heads,
                            [&](int64_t width) { return tarn__attention_plain_bytes(pass, (int)width); });
}

void tarn__cuda_attention_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ATTENTION].run = attention;
  kernels[TARN__OP_ATTENTION_BACKWARD].run = backward_node;
  kernels[TARN__OP_ATTENTION_BACKWARD].scratch = backward_scratch;
  kernels[TARN__OP_ATTENTION_TANGENT].run = tangent_node;
  tarn__cuda_attention_rows_entries(kernels);
  tarn__cuda_bias_table_entries(kernels);
  tarn__cuda_rotary_entries(kernels);
}

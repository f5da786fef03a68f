// The nearest product keys of queries. A block has four rows of one head: the scores of all keys for all four, then a
// warp for each row chooses.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/experts/expert_rows.h"
#include "device/cuda/rows/by_number.h"

extern "C" {
#include "ops/product_keys.h"
}

constexpr int ROWS = 4, THREADS = ROWS * TARN__WARP_SIZE;

typedef struct keys_of {
  const void *queries, *keys;
  bool bf16, whole;
  int64_t rows;
  int heads, nearest, keys_of_half, width;
} keys_of;

static keys_of arguments_of(const tarn__node *node, const tarn__tensor *queries) {
  const tarn__tensor *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const tarn__product_keys_spec *spec = (const tarn__product_keys_spec *)node->attr;
  keys_of a = {};
  a.queries = queries->data;
  a.keys = keys->data;
  a.bf16 = keys->dtype == TARN__BF16;
  a.rows = queries->rows;
  a.heads = (int)spec->heads;
  a.nearest = (int)spec->nearest;
  a.keys_of_half = (int)(keys->rows / (2 * spec->heads));
  a.width = (int)keys->cols;
  a.whole = tarn__whole_eights(2, keys->cols, a.queries, a.keys);
  return a;
}

// scores [4, 2, n] of the rows for both halves of head `head`, from queries [4, 2 w], both in shared memory.
static __device__ void score(float *scores, float *queries, const keys_of &a, int64_t first, int head) {
  const int w = a.width, n = a.keys_of_half;
  for (int i = (int)threadIdx.x; i < ROWS * 2 * w; i += THREADS) {
    const int64_t row = first + i / (2 * w), at = (row * a.heads + head) * 2 * w + i % (2 * w);
    float v = 0.0f;
    if (row < a.rows)
      v = a.bf16 ? tarn__get(static_cast<const tarn__bf16 *>(a.queries)[at])
                 : static_cast<const float *>(a.queries)[at];
    queries[i] = v;
  }
  __syncthreads();
  for (int i = (int)threadIdx.x; i < 2 * n; i += THREADS) {
    float sums[ROWS] = {0};
    const float *query = queries + i / n * w;
    for (int c = 0; c < w; c += TARN__EIGHT) {
      float key[TARN__EIGHT];
      tarn__read8_of(key, a.keys, a.bf16, ((int64_t)head * 2 * n + i) * w + c, w - c, a.whole);
      for (int k = 0; k < TARN__EIGHT && c + k < w; k++)
        for (int r = 0; r < ROWS; r++) sums[r] += key[k] * query[r * 2 * w + c + k];
    }
    for (int r = 0; r < ROWS; r++) scores[r * 2 * n + i] = sums[r];
  }
  __syncthreads();
}

// The pairs of largest sum, by falling sum, of the best numbers of both halves; a warp. Of each number of the first
// half the next partner is at `next`.
static __device__ void pair(int32_t *ids, float *sums, const float *s, const float *t, const int *best_s,
                            const int *best_t, int *next, int n, int count) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int i = lane; i < count; i += TARN__WARP_SIZE) next[i] = 0;
  for (int j = 0; j < count; j++) {
    float value = 0.0f;
    int best = -1, own = -1;
    for (int i = lane; i < count; i += TARN__WARP_SIZE) {
      if (next[i] == count) continue;
      const int partner = best_t[next[i]], id = best_s[i] * n + partner;
      const float both = s[best_s[i]] + t[partner], sum = both == both ? both : -INFINITY;
      if (best < 0 || tarn__is_better(sum, id, value, best)) {
        value = sum;
        best = id;
        own = i;
      }
    }
    const int mine = best;
    tarn__warp_best(&value, &best);
    if (own >= 0 && mine == best) next[own]++;
    if (lane == 0) {
      ids[j] = best;
      sums[j] = value;
    }
  }
  __syncwarp();
}

static __global__ void __launch_bounds__(THREADS) product_keys_kernel(float *gates, int32_t *ids, const keys_of a) {
  TARN__SHARED(float, shared);
  const int warp = (int)threadIdx.x / TARN__WARP_SIZE, lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int n = a.keys_of_half, k = a.nearest, head = (int)blockIdx.y;
  const int64_t first = (int64_t)blockIdx.x * ROWS, row = first + warp, at = (row * a.heads + head) * k;
  float *scores = shared + ROWS * 2 * a.width, *sums = scores + ROWS * 2 * n + warp * 4 * k;
  int *best_s = reinterpret_cast<int *>(sums + k), *best_t = best_s + k, *next = best_t + k;
  score(scores, shared, a, first, head);
  if (row >= a.rows) return;
  const float *s = scores + warp * 2 * n, *t = s + n;
  tarn__choose(best_s, s, n, k);
  tarn__choose(best_t, t, n, k);
  pair(ids + at, sums, s, t, best_s, best_t, next, n, k);
  const float most = sums[0];
  float sum = 0.0f;
  for (int j = lane; j < k; j += TARN__WARP_SIZE) sum += expf(sums[j] - most);
  sum = tarn__warp_sum(sum);
  for (int j = lane; j < k; j += TARN__WARP_SIZE) gates[at + j] = expf(sums[j] - most) / sum;
}

static size_t room_of(const keys_of &a) {
  return ROWS * (2 * (size_t)a.width + 2 * (size_t)a.keys_of_half + 4 * (size_t)a.nearest) * sizeof(float);
}

const char *tarn__cuda_product_keys_lacks(const tarn__node *node) {
  if (node->op->id != TARN__OP_PRODUCT_KEYS) return NULL;
  keys_of a = arguments_of(node, node->in[TARN__PRODUCT_KEYS_QUERIES]);
  return tarn__cuda_at_most("memories", "keys of a half", a.keys_of_half, [&](int64_t keys) {
    a.keys_of_half = (int)keys;
    return room_of(a);
  });
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const keys_of a = arguments_of(node, node->in[TARN__PRODUCT_KEYS_QUERIES]);
  const dim3 blocks(tarn__blocks(a.rows, ROWS), (unsigned)a.heads);
  TARN__LAUNCH(product_keys_kernel, blocks, THREADS, room_of(a), tarn__cuda_stream(exec->stream),
               (float *)node->out[TARN__PRODUCT_KEYS_GATES]->data, (int32_t *)node->out[TARN__PRODUCT_KEYS_IDS]->data,
               a);
  return TARN_STATUS_OK;
}

// --- backward

// The row of a half's key of a pair, among all keys.
static __device__ __forceinline__ int64_t key_of(const keys_of &a, int head, int half, int32_t id) {
  return (int64_t)(2 * head + half) * a.keys_of_half + (half ? id % a.keys_of_half : id / a.keys_of_half);
}

// The gradient of every pair's sum; numbers [pairs, 2]: the pair's keys. A warp for the pairs of a row and head.
static __global__ void __launch_bounds__(THREADS)
    product_slopes_kernel(float *slopes, int32_t *numbers, const float *gates, const float *dgates, const int32_t *ids,
                          const keys_of a) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t group = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / TARN__WARP_SIZE, at = group * a.nearest;
  if (group >= a.rows * a.heads) return;
  const int head = (int)(group % a.heads);
  float mean = 0.0f;
  for (int j = lane; j < a.nearest; j += TARN__WARP_SIZE) mean += gates[at + j] * dgates[at + j];
  mean = tarn__warp_sum(mean);
  for (int j = lane; j < a.nearest; j += TARN__WARP_SIZE) {
    slopes[at + j] = gates[at + j] * (dgates[at + j] - mean);
    for (int half = 0; half < 2; half++) numbers[2 * (at + j) + half] = (int32_t)key_of(a, head, half, ids[at + j]);
  }
}

// The gradient of a half of a query: a row is one half of one head of a row.
template <typename T>
struct query_gradient {
  T *dqueries;
  const T *keys;
  const float *slopes;
  const int32_t *numbers;
  int64_t width;
  int nearest;
  bool add, whole;
  __device__ void operator()(int64_t half_row, int64_t column, int left) const {
    const int64_t at = half_row / 2 * nearest, half = half_row % 2;
    float sum[TARN__EIGHT] = {0};
    if (add) tarn__read8(sum, dqueries + half_row * width + column, left, whole);
    for (int64_t j = at; j < at + nearest; j++) {
      float v[TARN__EIGHT];
      const float slope = slopes[j];
      tarn__read8(v, keys + numbers[2 * j + half] * width + column, left, whole);
      for (int i = 0; i < TARN__EIGHT; i++) sum[i] += slope * v[i];
    }
    tarn__write8(dqueries + half_row * width + column, sum, left, whole);
  }
};

// The query of an item, a half of a pair, times its slope.
template <typename T>
struct sloped_query {
  const T *queries;
  const float *slopes;
  int64_t width;
  int nearest;
  bool whole;
  __device__ void operator()(float v[TARN__EIGHT], int64_t item, int64_t column, int left) const {
    const float slope = slopes[item / 2];
    const int64_t half_row = tarn__quotient(item / 2, nearest) * 2 + item % 2;
    tarn__read8(v, queries + half_row * width + column, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] *= slope;
  }
};

// Scratch: slopes, numbers, and that of the sums of rows by number.
static size_t slopes_bytes(int64_t pairs) { return ((size_t)pairs * 3 * sizeof(float) + 63) / 64 * 64; }

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const keys_of a = arguments_of(node, queries);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *dqueries = node->out[0];
  const int64_t groups = a.rows * a.heads, pairs = groups * a.nearest;
  float *slopes = (float *)node->scratch;
  int32_t *numbers = (int32_t *)(slopes + pairs);
  TARN__LAUNCH(product_slopes_kernel, tarn__blocks(groups * TARN__WARP_SIZE, THREADS), THREADS, 0, stream, slopes,
               numbers, (const float *)node->in[TARN__PRODUCT_KEYS_G]->data,
               (const float *)node->in[TARN__PRODUCT_KEYS_DGATES]->data,
               (const int32_t *)node->in[TARN__PRODUCT_KEYS_CHOSEN]->data, a);
  if (dqueries) {
    const query_gradient<T> each = {(T *)dqueries->data,
                                    (const T *)keys->data,
                                    slopes,
                                    numbers,
                                    a.width,
                                    a.nearest,
                                    node->in[TARN__PRODUCT_KEYS_PREVIOUS] != NULL,
                                    a.whole && tarn__whole_eights(2, a.width, dqueries->data)};
    TARN_TRY(tarn__each8(each, 2 * groups, a.width, stream));
  }
  if (!node->dparam[0]) return TARN_STATUS_OK;
  const sloped_query<T> row = {(const T *)queries->data, slopes, a.width, a.nearest, a.whole};
  return tarn__table_gradient(node->dparam[0], row, numbers, 2 * pairs, (char *)node->scratch + slopes_bytes(pairs),
                              stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__PRODUCT_KEYS_QUERIES]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  const int64_t pairs = gates->rows * gates->cols;
  return slopes_bytes(pairs) + (node->dparam[0] ? tarn__by_number_bytes(2 * pairs, node->dparam[0]->cols) : 0);
}

// --- tangents, in fp32: queries are those of the queries

static __global__ void __launch_bounds__(THREADS)
    product_keys_tangent_kernel(float *dgates, const float *gates, const int32_t *ids, int64_t period,
                                const keys_of a) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t group = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / TARN__WARP_SIZE;
  if (group >= a.rows * a.heads) return;
  const int head = (int)(group % a.heads);
  const float *moved = static_cast<const float *>(a.queries) + group * 2 * a.width;
  const int64_t own = group % (period * a.heads) * a.nearest;
  dgates += group * a.nearest;
  gates += own;
  ids += own;
  float mean = 0.0f;
  for (int j = 0; j < a.nearest; j++) {
    float sum = 0.0f;
    for (int half = 0; half < 2; half++) {
      const float *key = static_cast<const float *>(a.keys) + key_of(a, head, half, ids[j]) * a.width;
      for (int c = lane; c < a.width; c += TARN__WARP_SIZE) sum += moved[half * a.width + c] * key[c];
    }
    sum = tarn__warp_sum(sum);
    mean += gates[j] * sum;
    if (lane == 0) dgates[j] = sum;
  }
  __syncwarp();
  for (int j = lane; j < a.nearest; j += TARN__WARP_SIZE) dgates[j] = gates[j] * (dgates[j] - mean);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const keys_of a = arguments_of(node, node->in[TARN__PRODUCT_KEYS_DQUERIES]);
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  TARN__LAUNCH(product_keys_tangent_kernel, tarn__blocks(a.rows * a.heads * TARN__WARP_SIZE, THREADS), THREADS, 0,
               tarn__cuda_stream(exec->stream), (float *)node->out[0]->data, (const float *)gates->data,
               (const int32_t *)node->in[TARN__PRODUCT_KEYS_CHOSEN]->data, gates->rows, a);
  return TARN_STATUS_OK;
}

void tarn__cuda_product_keys_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_PRODUCT_KEYS].run = forward;
  kernels[TARN__OP_PRODUCT_KEYS_BACKWARD] = {backward_node, backward_scratch};
  kernels[TARN__OP_PRODUCT_KEYS_TANGENT].run = tangent;
}

// Gradients of attention with relative keys and values. First a pass with queries as own rows: statistics of their
// softmax, gradients of queries, and, for each query and distance, the sum of the gradients of scores, and of weights,
// of the keys at that distance. Then one with keys as own rows: gradients of keys and values. Then the gradients of
// both tables are products: of these sums with queries, and with the gradients of results.
#include "device/cuda/attention/relative_attention_cuda.h"
#include "device/cuda/mixing/tile_product.h"

// Of query i, of row r, and head h: the largest score, the inverse of the sum of exponentials, and the mean gradient of
// the weights, each [heads, rows].
typedef struct statistics {
  float *most, *share, *mean;
} statistics;

// Sums by distance [rows, heads, count], from -reach on; NULL: not wanted.
typedef struct by_distance {
  float *scores, *weights;
  int64_t reach, count;
} by_distance;

template <typename T>
struct gradients {
  const T *dy;
  T *dqueries, *dkeys, *dvalues;  // from their first columns on; NULL: not wanted
  int64_t query_step, key_step;
  bool add_queries, add_keys;
  statistics of;
  by_distance distances;
};

// Scores and gradients of weights of a pair of tiles, whose own rows are queries.
template <typename T>
static __device__ __forceinline__ void score_pairs(float (&scores)[TARN__PAIR_OWN], float (&change)[TARN__PAIR_OWN],
                                                   const tarn__relative_node<T> &w, const gradients<T> &g,
                                                   const tarn__relative_tile &t, int64_t j0, float *shared) {
  float kept[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) scores[r] = change[r] = 0.0f;
  tarn__pair_products<TARN__PAIR_QUERIES>(scores, tarn__relative_queries(w, w.queries, w.query_step, t, t.h, t.own),
                                          tarn__relative_keys(w, w.keys, t, t.h, j0),
                                          tarn__relative_near(w, w.key_table, j0 - t.own), w.width, shared);
  tarn__pair_products<TARN__PAIR_QUERIES>(change, tarn__relative_queries(w, g.dy, w.heads * w.width, t, t.h, t.own),
                                          tarn__relative_keys(w, w.values, t, t.h, j0),
                                          tarn__relative_near(w, w.value_table, j0 - t.own), w.width, shared);
  tarn__relative_kept(kept, w, t, j0, shared);
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const bool sees = tarn__relative_sees(w, t.n, t.own + tarn__pair_own(r), j0 + tarn__pair_lane());
    scores[r] = sees ? scores[r] * w.scale : -INFINITY;
    change[r] *= kept[r];
  }
}

// Writes zeros for the distances from query i that do not occur in its sentence.
template <typename T>
static __device__ void clear_distances(float *sums, const tarn__relative_node<T> &w, int64_t i, int64_t n,
                                       const by_distance &d) {
  for (int64_t k = tarn__pair_lane(); k < d.count; k += TARN__WARP_SIZE) {
    const int64_t j = i + k - d.reach;
    const bool clipped = k == 0 || k == 2 * d.reach;  // written in any case
    if (!clipped && (j < 0 || !tarn__relative_sees(w, n, i, j))) sums[k] = 0.0f;
  }
}

// Puts the numbers of keys nearer than the reach in their places, and adds those of all others to `before` and
// `behind`.
static __device__ __forceinline__ void put_distance(float *sums, const by_distance &d, int64_t distance, float x,
                                                    float *before, float *behind) {
  if (distance <= -d.reach)
    *before += x;
  else if (distance >= d.reach)
    *behind += x;
  else
    sums[d.reach + distance] = x;
}

// The numbers of the farthest distances, of one row. With a reach of 0 there is one distance.
static __device__ __forceinline__ void put_farthest(float *sums, const by_distance &d, float before, float behind) {
  before = tarn__warp_sum(before);
  behind = tarn__warp_sum(behind);
  if (tarn__pair_lane() != 0) return;
  sums[0] = d.reach == 0 ? before + behind : before;
  if (d.reach > 0 && d.count > 2 * d.reach) sums[2 * d.reach] = behind;
}

template <typename T>
static __device__ __forceinline__ int64_t keys_seen(const tarn__relative_node<T> &w, const tarn__relative_tile &t) {
  return w.causal && t.own + TARN__PAIR < t.n ? t.own + TARN__PAIR : t.n;
}

// The softmax of each own row, and the mean gradient of its weights; written by the blocks of the first columns.
template <typename T>
static __device__ __forceinline__ void find_statistics(float (&most)[TARN__PAIR_OWN], float (&share)[TARN__PAIR_OWN],
                                                       float (&mean)[TARN__PAIR_OWN], const tarn__relative_node<T> &w,
                                                       const gradients<T> &g, const tarn__relative_tile &t,
                                                       float *shared) {
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin(), mean[r] = 0.0f;
  for (int64_t j0 = 0; j0 < keys_seen(w, t); j0 += TARN__PAIR) {
    float scores[TARN__PAIR_OWN], change[TARN__PAIR_OWN], factor;
    score_pairs(scores, change, w, g, t, j0, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const float e = tarn__pair_softmax_take(&softmax[r], scores[r], &factor);
      mean[r] = mean[r] * factor + e * change[r];
    }
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int64_t i = t.own + tarn__pair_own(r), at = t.h * w.rows + t.first + i;
    most[r] = softmax[r].most;
    share[r] = 1.0f / tarn__warp_sum(softmax[r].sum);
    mean[r] = tarn__warp_sum(mean[r]) * share[r];
    if (i >= t.n || blockIdx.z > 0 || tarn__pair_lane() != 0) continue;
    g.of.most[at] = most[r];
    g.of.share[at] = share[r];
    g.of.mean[at] = mean[r];
  }
}

template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    relative_queries_kernel(tarn__relative_node<T> w, gradients<T> g) {
  TARN__SHARED(float, shared);
  const tarn__relative_tile t = tarn__relative_tile_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int lane = tarn__pair_lane();
  const bool first = blockIdx.z == 0;
  const by_distance &d = g.distances;
  float *moving = shared + TARN__PAIR_WEIGHTS, sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  float most[TARN__PAIR_OWN], share[TARN__PAIR_OWN], mean[TARN__PAIR_OWN];
  float before[2][TARN__PAIR_OWN] = {}, behind[2][TARN__PAIR_OWN] = {};
  if (t.own >= t.n) return;
  find_statistics(most, share, mean, w, g, t, shared);
  if (!g.dqueries && !d.scores && !d.weights) return;
  const int64_t at = (t.first + t.own + tarn__pair_own(0)) * w.heads + t.h, step = w.heads * d.count;
  for (int64_t j0 = 0; j0 < keys_seen(w, t); j0 += TARN__PAIR) {
    float scores[TARN__PAIR_OWN], change[TARN__PAIR_OWN], kept[TARN__PAIR_OWN];
    score_pairs(scores, change, w, g, t, j0, shared);
    tarn__relative_kept(kept, w, t, j0, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const float p = scores[r] == -INFINITY ? 0.0f : expf(scores[r] - most[r]) * share[r];
      const float ds = w.scale * p * (change[r] - mean[r]);
      const int64_t i = t.own + tarn__pair_own(r), distance = j0 + lane - i;
      moving[tarn__pair_own(r) * TARN__PAIR + lane] = ds;
      if (!first || scores[r] == -INFINITY) continue;
      if (d.scores) put_distance(d.scores + at * d.count + r * step, d, distance, ds, &before[0][r], &behind[0][r]);
      if (d.weights)
        put_distance(d.weights + at * d.count + r * step, d, distance, kept[r] * p, &before[1][r], &behind[1][r]);
    }
    if (g.dqueries)
      tarn__pair_sums(sums, moving, tarn__relative_keys(w, w.keys, t, t.h, j0),
                      tarn__relative_near(w, w.key_table, j0 - t.own), column, w.width, shared);
  }
#pragma unroll
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int64_t i = t.own + tarn__pair_own(r), from = at * d.count + r * step;
    if (!first || i >= t.n) continue;  // so do all lanes
    if (d.scores) clear_distances(d.scores + from, w, i, t.n, d);
    if (d.scores) put_farthest(d.scores + from, d, before[0][r], behind[0][r]);
    if (d.weights) clear_distances(d.weights + from, w, i, t.n, d);
    if (d.weights) put_farthest(d.weights + from, d, before[1][r], behind[1][r]);
  }
  if (g.dqueries)
    tarn__pair_write(g.dqueries + (t.first + t.own) * g.query_step + t.h * w.width, g.query_step, t.n - t.own, sums,
                     column, w.width, g.add_queries);
}

// A tile of keys of a head of keys: from all queries of the heads that read it.
template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    relative_keys_kernel(tarn__relative_node<T> w, gradients<T> g) {
  TARN__SHARED(float, shared);
  const tarn__relative_tile t = tarn__relative_tile_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int lane = tarn__pair_lane();
  float *moving = shared + TARN__PAIR_WEIGHTS, *weights = moving + TARN__PAIR * TARN__PAIR;
  float of_keys[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, of_values[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  const tarn__pair_near<T> none = {};
  if (t.own >= t.n) return;
  for (int64_t h = t.h * w.group; h < (t.h + 1) * w.group; h++)
    for (int64_t i0 = w.causal ? t.own : 0; i0 < t.n; i0 += TARN__PAIR) {
      const auto queries = tarn__relative_queries(w, w.queries, w.query_step, t, h, i0);
      const auto dy = tarn__relative_queries(w, g.dy, w.heads * w.width, t, h, i0);
      const int64_t i = i0 + lane, at = h * w.rows + t.first + i;
      float scores[TARN__PAIR_OWN] = {}, change[TARN__PAIR_OWN] = {}, kept[TARN__PAIR_OWN];
      tarn__pair_products<TARN__PAIR_KEYS>(scores, tarn__relative_keys(w, w.keys, t, h, t.own), queries,
                                           tarn__relative_near(w, w.key_table, t.own - i0), w.width, shared);
      tarn__pair_products<TARN__PAIR_KEYS>(change, tarn__relative_keys(w, w.values, t, h, t.own), dy,
                                           tarn__relative_near(w, w.value_table, t.own - i0), w.width, shared);
      tarn__relative_kept_keys(kept, w, t, h, i);
      for (int r = 0; r < TARN__PAIR_OWN; r++) {
        const bool sees = tarn__relative_sees(w, t.n, i, t.own + tarn__pair_own(r));
        const float p = sees ? expf(scores[r] * w.scale - g.of.most[at]) * g.of.share[at] : 0.0f;
        const float mean = sees ? g.of.mean[at] : 0.0f;
        moving[tarn__pair_own(r) * TARN__PAIR + lane] = w.scale * p * (kept[r] * change[r] - mean);
        weights[tarn__pair_own(r) * TARN__PAIR + lane] = kept[r] * p;
      }
      tarn__pair_sums(of_keys, moving, queries, none, column, w.width, shared);
      tarn__pair_sums(of_values, weights, dy, none, column, w.width, shared);
    }
  const int64_t to = (t.first + t.own) * g.key_step + t.h * w.width;
  tarn__pair_write(g.dkeys + to, g.key_step, t.n - t.own, of_keys, column, w.width, g.add_keys);
  tarn__pair_write(g.dvalues + to, g.key_step, t.n - t.own, of_values, column, w.width, g.add_keys);
}

// The gradient of a table from a slice of the rows: sums [slices, count, width]; rows x [rows, heads * width].
template <typename T>
static __global__ void __launch_bounds__(TARN__TILE_SIDE_THREADS)
    relative_table_kernel(float *sums, const float *distances, int64_t count, const T *x, int64_t step, int64_t rows,
                          int64_t each, int heads, int64_t width) {
  TARN__SHARED(float, shared);
  const int64_t first = blockIdx.z * each, end = first + each < rows ? first + each : rows;
  const int64_t distance = (int64_t)blockIdx.x * TARN__TILE_SIDE, column = (int64_t)blockIdx.y * TARN__TILE_SIDE;
  const int64_t terms = end > first ? (end - first) * heads : 0;
  float tile[4][4];
  tarn__tile_product<false, false>(
      tile, [&](int64_t d, int64_t term) { return distances[(first * heads + term) * count + d]; },
      [&](int64_t c, int64_t term) {
        const unsigned r = (unsigned)term / (unsigned)heads, h = (unsigned)term % (unsigned)heads;
        return tarn__get(x[(first + r) * step + h * width + c]);
      },
      distance, count, column, width, terms, shared);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int64_t d = distance + tarn__tile_row(i), c = column + tarn__tile_column(j);
      if (d < count && c < width) sums[((int64_t)blockIdx.z * count + d) * width + c] = tile[i][j];
    }
}

// --- the host's side

// Memory of the backward pass, in floats and, for copies of queries that their gradient replaces, bytes.
typedef struct room {
  int64_t statistics, distances, sums;  // distances: of one table
  int64_t reach, count;
  size_t copy;
} room;

static bool in_place(const tarn__node *node) {
  const tarn__tensor *dqueries = node->out[TARN__ATTENTION_DQUERIES];
  return dqueries && tarn__tensor_owner(const_cast<tarn__tensor *>(dqueries)) ==
                         tarn__tensor_owner(node->in[TARN__ATTENTION_QUERIES]);
}

static room room_of(const tarn__node *node) {
  const tarn__attention_attr *attr = (const tarn__attention_attr *)node->attr;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES];
  const int64_t heads = attr->spec.heads, width = attr->spec.d / heads, rows = queries->rows;
  const int64_t farthest = attr->spec.longest > 1 ? attr->spec.longest - 1 : 0;
  room r = {};
  r.reach = attr->reach < farthest ? attr->reach : farthest;
  r.count = attr->spec.causal ? r.reach + 1 : 2 * r.reach + 1;
  r.statistics = 3 * heads * rows;
  r.distances = rows * heads * r.count;
  r.sums = tarn__part_count(rows) * r.count * width;
  if (in_place(node)) r.copy = (size_t)(rows * queries->cols) * tarn__dtype_size(queries->dtype);
  return r;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  const room r = room_of(node);
  const int tables = (node->dparam[0] != NULL) + (node->dparam[1] != NULL);
  return (size_t)(r.statistics + tables * r.distances + (tables ? r.sums : 0)) * sizeof(float) + r.copy;
}

// Adds to the gradient of a table; distances that do not occur in any sentence have zeros.
template <typename T>
static tarn_status table_gradient(tarn__param *table, const tarn__relative_node<T> &w, const room &r, float *sums,
                                  const float *distances, const T *x, int64_t step, cudaStream_t stream) {
  float *grad = (float *)table->training.grad;
  const bool add = tarn__param_accumulate(table) != 0;
  const int64_t slices = tarn__part_count(w.rows), n = r.count * w.width;
  if (!add)
    TARN__CUDA(cudaMemsetAsync(grad, 0, (size_t)(table->rows * table->cols) * sizeof(float), stream),
               "clearing a gradient");
  TARN__LAUNCH(relative_table_kernel<T>,
               dim3(tarn__blocks(r.count, TARN__TILE_SIDE), tarn__blocks(w.width, TARN__TILE_SIDE), (unsigned)slices),
               TARN__TILE_SIDE_THREADS, TARN__TILE_FLOATS * sizeof(float), stream, sums, distances, r.count, x, step,
               w.rows, tarn__part_rows(w.rows), (int)w.heads, w.width);
  return tarn__cuda_sum_parts(grad + (w.reach - r.reach) * w.width, sums, slices, n, add, stream);
}

// Clears gradients whose columns are not all written.
static tarn_status clear_others(const tarn__tensor *gradient, bool add, int64_t written, cudaStream_t stream) {
  if (!gradient || add || gradient->cols == written) return TARN_STATUS_OK;
  TARN__CUDA(cudaMemsetAsync(gradient->data, 0,
                             (size_t)(gradient->rows * gradient->cols) * tarn__dtype_size(gradient->dtype), stream),
             "clearing a gradient");
  return TARN_STATUS_OK;
}

template <typename T>
static gradients<T> gradients_of(const tarn__node *node, const room &r, bool self) {
  const tarn__attention_spec *spec = (const tarn__attention_spec *)node->attr;
  const tarn__tensor *dqueries = node->out[TARN__ATTENTION_DQUERIES];
  const tarn__tensor *dkeys = self ? dqueries : node->out[TARN__ATTENTION_DKEYS_VALUES];
  float *memory = (float *)node->scratch, *distances = memory + r.statistics;
  gradients<T> g = {};
  g.dy = (const T *)node->in[TARN__ATTENTION_DO]->data;
  if (dqueries) g.dqueries = (T *)dqueries->data + spec->query_column, g.query_step = dqueries->cols;
  if (dkeys) {
    g.dkeys = (T *)dkeys->data + spec->key_column;
    g.dvalues = (T *)dkeys->data + spec->value_column;
    g.key_step = dkeys->cols;
  }
  g.add_queries = node->in[TARN__ATTENTION_PREVIOUS_QUERIES] != NULL;
  g.add_keys = self ? g.add_queries : node->in[TARN__ATTENTION_PREVIOUS_KEYS_VALUES] != NULL;
  g.of = {memory, memory + r.statistics / 3, memory + 2 * (r.statistics / 3)};
  g.distances = {node->dparam[0] ? distances : (float *)nullptr,
                 node->dparam[1] ? distances + (node->dparam[0] ? r.distances : 0) : (float *)nullptr, r.reach,
                 r.count};
  return g;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = (const tarn__attention_attr *)node->attr;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__tensor *offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  const bool self = kv == NULL;
  const room r = room_of(node);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const int tables = (node->dparam[0] != NULL) + (node->dparam[1] != NULL);
  float *sums = (float *)node->scratch + r.statistics + tables * r.distances;
  const void *read = queries->data;
  if (r.copy) {
    void *copy = sums + (tables ? r.sums : 0);
    TARN__CUDA(cudaMemcpyAsync(copy, read, r.copy, cudaMemcpyDeviceToDevice, stream), "copying queries");
    read = copy;
  }
  const tarn__relative_node<T> w = tarn__relative_of<T>(exec, node, read, self ? read : kv->data);
  const gradients<T> g = gradients_of<T>(node, r, self);
  const int64_t of_keys = 2 * tarn__attention_kv_width(attr);
  TARN_TRY(
      clear_others(node->out[TARN__ATTENTION_DQUERIES], g.add_queries, attr->spec.d + (self ? of_keys : 0), stream));
  if (!self) TARN_TRY(clear_others(node->out[TARN__ATTENTION_DKEYS_VALUES], g.add_keys, of_keys, stream));
  TARN__LAUNCH(relative_queries_kernel<T>, tarn__relative_blocks(w, offsets, 1, w.heads), TARN__PAIR_THREADS,
               TARN__PAIR_FLOATS * sizeof(float), stream, w, g);
  if (g.dkeys)
    TARN__LAUNCH(relative_keys_kernel<T>, tarn__relative_blocks(w, offsets, 1, w.heads / w.group), TARN__PAIR_THREADS,
                 TARN__PAIR_FLOATS * sizeof(float), stream, w, g);
  if (node->dparam[TARN__RELATIVE_DKEYS])
    TARN_TRY(table_gradient(node->dparam[TARN__RELATIVE_DKEYS], w, r, sums, g.distances.scores, w.queries, w.query_step,
                            stream));
  if (node->dparam[TARN__RELATIVE_DVALUES])
    TARN_TRY(table_gradient(node->dparam[TARN__RELATIVE_DVALUES], w, r, sums, g.distances.weights, g.dy,
                            w.heads * w.width, stream));
  return TARN_STATUS_OK;
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__ATTENTION_DO]->dtype, exec, node);
}

void tarn__cuda_relative_backward_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RELATIVE_ATTENTION_BACKWARD].run = backward_node;
  kernels[TARN__OP_RELATIVE_ATTENTION_BACKWARD].scratch = scratch;
}

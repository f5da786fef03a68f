// Gradients of synthetic attention: of queries, sources and the mix with queries as own rows of tiles, which also finds
// statistics of each softmax; of keys and values with keys as own rows; and of the weight, position by position, over
// slices of the sentences.
#include "device/cuda/attention/synthesis_tiles.h"

// Of token r and head h, each [heads, rows]: the largest of the combined logits, the inverse of the sum of their
// exponentials, and the mean gradient of the weights.
typedef struct statistics {
  float *most, *share, *mean;
} statistics;

template <typename T>
struct gradients {
  const T *dy;
  T *dqueries, *dkeys, *dvalues, *dsource;  // NULL: not wanted
  float *factors;                           // FACTORISED: the gradient of the source so far, which starts with zeros
  float *of_mix;                            // of both shares, by block; NULL: not wanted
  bool add_x, add_source;
  statistics of;
};

// Combined logits and gradients of the weights of a pair of tiles whose own rows are queries.
template <typename T>
static __device__ __forceinline__ void weigh_pairs(float (&logits)[TARN__PAIR_OWN], float (&scores)[TARN__PAIR_OWN],
                                                   float (&both)[TARN__PAIR_OWN], float (&change)[TARN__PAIR_OWN],
                                                   const tarn__synthesis_node<T> &w, const T *dy,
                                                   const tarn__synthesis_pair &t, const float share[2], float *shared) {
  const int64_t d = w.heads * w.width;
  for (int r = 0; r < TARN__PAIR_OWN; r++) change[r] = 0.0f;
  tarn__synthesis_weigh<TARN__PAIR_QUERIES>(logits, scores, w, t, shared);
  tarn__synthesis_products<TARN__PAIR_QUERIES>(
      change, tarn__synthesis_rows_at(dy, d, t.first + t.query, t.h * w.width, t.n - t.query),
      tarn__synthesis_keys(w, w.values, t), w.width, shared);
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const bool sees = tarn__synthesis_sees(w, t.n, t.query + tarn__pair_own(r), t.key + tarn__pair_lane());
    both[r] = sees ? share[0] * logits[r] + share[1] * scores[r] : -INFINITY;
  }
}

template <typename T>
static __device__ __forceinline__ void find_statistics(float (&most)[TARN__PAIR_OWN], float (&part)[TARN__PAIR_OWN],
                                                       float (&mean)[TARN__PAIR_OWN], const tarn__synthesis_node<T> &w,
                                                       const gradients<T> &g, tarn__synthesis_pair t,
                                                       const float share[2], float *shared) {
  tarn__pair_softmax softmax[TARN__PAIR_OWN];
  for (int r = 0; r < TARN__PAIR_OWN; r++) softmax[r] = tarn__pair_softmax_begin(), mean[r] = 0.0f;
  const int64_t end = tarn__synthesis_end(w, t);
  for (t.key = 0; t.key < end; t.key += TARN__PAIR) {
    float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], both[TARN__PAIR_OWN], change[TARN__PAIR_OWN], factor;
    weigh_pairs(logits, scores, both, change, w, g.dy, t, share, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const float e = tarn__pair_softmax_take(&softmax[r], both[r], &factor);
      mean[r] = mean[r] * factor + e * change[r];
    }
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int64_t i = t.query + tarn__pair_own(r), at = t.h * w.rows + t.first + i;
    most[r] = softmax[r].most;
    part[r] = 1.0f / tarn__warp_sum(softmax[r].sum);
    mean[r] = tarn__warp_sum(mean[r]) * part[r];
    if (i >= t.n || blockIdx.z > 0 || tarn__pair_lane() != 0) continue;
    g.of.most[at] = most[r];
    g.of.share[at] = part[r];
    g.of.mean[at] = mean[r];
  }
}

// Adds the gradients of 32 logits of a warp's own row, in `logits` [32] of shared memory, to those of its factors. Each
// lane has one factor of each kind, of which at most 32 take part.
template <typename T>
static __device__ void add_factors(float *down, const T *own, const float *logits, int64_t left, int64_t j0,
                                   int64_t end) {
  const int64_t lane = tarn__pair_lane(), last = j0 + TARN__PAIR < end ? j0 + TARN__PAIR : end;
  if (lane < left && j0 + lane < last) {
    float sum = 0.0f;
    for (int64_t j = j0 + lane; j < last; j += left) sum += logits[j - j0] * tarn__get(own[left + j / left]);
    down[(j0 + lane) % left] += sum;
  }
  const int64_t right = j0 / left + lane;
  if (right * left < last) {
    float sum = 0.0f;
    const int64_t from = right * left > j0 ? right * left : j0,
                  to = (right + 1) * left < last ? (right + 1) * left : last;
    for (int64_t j = from; j < to; j++) sum += logits[j - j0] * tarn__get(own[j - right * left]);
    down[left + right] += sum;
  }
  __syncwarp();
}

// Both sums of the mix of this block; all threads must take part.
static __device__ __forceinline__ void put_mix(float *to, float of_logits, float of_scores, float *shared) {
  __syncthreads();
  const float a = tarn__block_sum(of_logits, shared), b = tarn__block_sum(of_scores, shared);
  if (threadIdx.x == 0) to[0] = a, to[1] = b;
}

template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    synthesis_queries_kernel(tarn__synthesis_node<T> w, gradients<T> g) {
  TARN__SHARED(float, shared);
  tarn__synthesis_pair t = tarn__synthesis_pair_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int lane = tarn__pair_lane();
  const bool first = blockIdx.z == 0;
  const tarn__pair_near<T> none = {};
  float *of_logits = shared + TARN__PAIR_WEIGHTS, *of_scores = of_logits + TARN__PAIR * TARN__PAIR;
  float queries[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, sources[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  float most[TARN__PAIR_OWN], part[TARN__PAIR_OWN], mean[TARN__PAIR_OWN], share[2], mix[2] = {};
  float *to_mix = g.of_mix ? g.of_mix + 2 * ((int64_t)blockIdx.x * w.heads + t.h) : (float *)nullptr;
  if (t.query >= t.n) {
    if (to_mix && first && threadIdx.x < 2) to_mix[threadIdx.x] = 0.0f;
    return;
  }
  tarn__synthesis_shares(share, w);
  find_statistics(most, part, mean, w, g, t, share, shared);
  if (!g.dqueries && !g.dsource && !g.of_mix) return;
  const int64_t end = tarn__synthesis_end(w, t);
  for (t.key = 0; t.key < end; t.key += TARN__PAIR) {
    float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], both[TARN__PAIR_OWN], change[TARN__PAIR_OWN];
    weigh_pairs(logits, scores, both, change, w, g.dy, t, share, shared);
    __syncwarp();
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      // Rows behind the sentence have no mean.
      const float d = both[r] == -INFINITY ? 0.0f : expf(both[r] - most[r]) * part[r] * (change[r] - mean[r]);
      of_logits[tarn__pair_own(r) * TARN__PAIR + lane] = share[0] * d;
      of_scores[tarn__pair_own(r) * TARN__PAIR + lane] = share[1] * w.scale * d;
      mix[0] += d * logits[r];
      mix[1] += d * scores[r];
    }
    __syncwarp();
    if (g.dqueries)
      tarn__pair_sums(queries, of_scores, tarn__synthesis_keys(w, w.keys, t), none, column, w.width, shared);
    if (g.dsource && w.form == TARN__SYNTHESIS_DENSE)
      tarn__pair_sums(sources, of_logits, tarn__synthesis_weights(w, t), none, column, w.source_width, shared);
    for (int r = 0; r < TARN__PAIR_OWN && g.factors; r++) {
      const int64_t i = t.query + tarn__pair_own(r), at = (t.first + i) * w.source_step + t.h * w.source_width;
      if (first && i < t.n)
        add_factors(g.factors + at, w.source + at, of_logits + tarn__pair_own(r) * TARN__PAIR, w.left, t.key, t.n);
    }
  }
  const int64_t row = t.first + t.query, count = t.n - t.query;
  if (g.dqueries)
    tarn__pair_write(g.dqueries + row * w.step + t.h * w.width, w.step, count, queries, column, w.width, g.add_x);
  if (g.dsource && w.form == TARN__SYNTHESIS_DENSE)
    tarn__pair_write(g.dsource + row * w.source_step + t.h * w.source_width, w.source_step, count, sources, column,
                     w.source_width, g.add_source);
  if (to_mix && first) put_mix(to_mix, mix[0], mix[1], shared);
}

// Weights of a pair of tiles whose own rows are keys, and the gradients of their logits before they are shared out.
template <typename T>
static __device__ __forceinline__ void weigh_keys(float (&p)[TARN__PAIR_OWN], float (&d)[TARN__PAIR_OWN],
                                                  const tarn__synthesis_node<T> &w, const gradients<T> &g,
                                                  const tarn__synthesis_pair &t, const float share[2], float *shared) {
  const int64_t i = t.query + tarn__pair_lane(), at = t.h * w.rows + t.first + i, step = w.heads * w.width;
  float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], change[TARN__PAIR_OWN] = {};
  tarn__synthesis_weigh<TARN__PAIR_KEYS>(logits, scores, w, t, shared);
  tarn__synthesis_products<TARN__PAIR_KEYS>(
      change, tarn__synthesis_rows_at(g.dy, step, t.first + t.query, t.h * w.width, t.n - t.query),
      tarn__synthesis_keys(w, w.values, t), w.width, shared);
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const bool sees = tarn__synthesis_sees(w, t.n, i, t.key + tarn__pair_own(r));
    const float both = share[0] * logits[r] + share[1] * scores[r];
    p[r] = sees ? expf(both - g.of.most[at]) * g.of.share[at] : 0.0f;
    d[r] = sees ? p[r] * (change[r] - g.of.mean[at]) : 0.0f;
  }
}

template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    synthesis_keys_kernel(tarn__synthesis_node<T> w, gradients<T> g) {
  TARN__SHARED(float, shared);
  tarn__synthesis_pair t = tarn__synthesis_pair_of(w, blockIdx.x, blockIdx.y);
  const int64_t column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS, step = w.heads * w.width;
  const int lane = tarn__pair_lane();
  const tarn__pair_near<T> none = {};
  float *weights = shared + TARN__PAIR_WEIGHTS, *of_scores = weights + TARN__PAIR * TARN__PAIR, share[2];
  float keys[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {}, values[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  if (t.key >= t.n) return;
  tarn__synthesis_shares(share, w);
  for (t.query = w.causal ? t.key : 0; t.query < t.n; t.query += TARN__PAIR) {
    float p[TARN__PAIR_OWN], d[TARN__PAIR_OWN];
    weigh_keys(p, d, w, g, t, share, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      weights[tarn__pair_own(r) * TARN__PAIR + lane] = p[r];
      of_scores[tarn__pair_own(r) * TARN__PAIR + lane] = share[1] * w.scale * d[r];
    }
    tarn__pair_sums(values, weights,
                    tarn__synthesis_rows_at(g.dy, step, t.first + t.query, t.h * w.width, t.n - t.query), none, column,
                    w.width, shared);
    if (g.dkeys)
      tarn__pair_sums(keys, of_scores, tarn__synthesis_queries(w, w.queries, t), none, column, w.width, shared);
  }
  const int64_t to = (t.first + t.key) * w.key_step + t.h * w.width;
  tarn__pair_write(g.dvalues + to, w.key_step, t.n - t.key, values, column, w.width, g.add_x);
  if (g.dkeys) tarn__pair_write(g.dkeys + to, w.key_step, t.n - t.key, keys, column, w.width, g.add_x);
}

// --- the weight: sums over slices of the sentences, each [heads, span, columns], span the longest sentence

typedef struct weight_sums {
  float *weight, *bias;  // bias [slices, heads, span]; NULL: not wanted
  int64_t slices, span, columns;
} weight_sums;

// DENSE: a tile of positions; the blocks of the first columns have the bias too.
template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    synthesis_dense_kernel(tarn__synthesis_node<T> w, gradients<T> g, weight_sums a) {
  TARN__SHARED(float, shared);
  const int64_t h = blockIdx.y % w.heads, slice = blockIdx.y / w.heads,
                column = (int64_t)blockIdx.z * TARN__PAIR_COLUMNS;
  const int64_t each = (w.sentences + a.slices - 1) / a.slices, last = (slice + 1) * each;
  const int lane = tarn__pair_lane();
  const tarn__pair_near<T> none = {};
  float *of_logits = shared + TARN__PAIR_WEIGHTS, share[2], bias[TARN__PAIR_OWN] = {};
  float sums[TARN__PAIR_CHUNKS][TARN__PAIR_OWN] = {};
  tarn__synthesis_pair t = {0, 0, 0, (int64_t)blockIdx.x * TARN__PAIR, h};
  tarn__synthesis_shares(share, w);
  for (int64_t s = slice * each; s < last && s < w.sentences; s++) {
    t.first = w.offset[s];
    t.n = w.offset[s + 1] - t.first;
    for (t.query = w.causal ? t.key : 0; t.query < t.n && t.key < t.n; t.query += TARN__PAIR) {
      float p[TARN__PAIR_OWN], d[TARN__PAIR_OWN];
      weigh_keys(p, d, w, g, t, share, shared);
      for (int r = 0; r < TARN__PAIR_OWN; r++) {
        of_logits[tarn__pair_own(r) * TARN__PAIR + lane] = share[0] * d[r];
        bias[r] += share[0] * d[r];
      }
      tarn__pair_sums(sums, of_logits, tarn__synthesis_sources(w, w.source, t), none, column, a.columns, shared);
    }
  }
  const int64_t to = (slice * w.heads + h) * a.span + t.key;
  tarn__pair_write(a.weight + to * a.columns, a.columns, a.span - t.key, sums, column, a.columns, false);
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    bias[r] = tarn__warp_sum(bias[r]);
    if (a.bias && column == 0 && lane == 0 && t.key + tarn__pair_own(r) < a.span)
      a.bias[to + tarn__pair_own(r)] = bias[r];
  }
}

// RANDOM: a pair of tiles of positions, of which x has that of queries and z that of keys.
template <typename T>
static __global__ void __launch_bounds__(TARN__PAIR_THREADS)
    synthesis_random_kernel(tarn__synthesis_node<T> w, gradients<T> g, weight_sums a) {
  TARN__SHARED(float, shared);
  const int64_t h = blockIdx.y % w.heads, slice = blockIdx.y / w.heads;
  const int64_t each = (w.sentences + a.slices - 1) / a.slices, last = (slice + 1) * each;
  float share[2], sums[TARN__PAIR_OWN] = {};
  tarn__synthesis_pair t = {0, 0, (int64_t)blockIdx.x * TARN__PAIR, (int64_t)blockIdx.z * TARN__PAIR, h};
  tarn__synthesis_shares(share, w);
  for (int64_t s = slice * each; s < last && s < w.sentences; s++) {
    t.first = w.offset[s];
    t.n = w.offset[s + 1] - t.first;
    if (t.query >= t.n || tarn__synthesis_end(w, t) <= t.key) continue;
    float logits[TARN__PAIR_OWN], scores[TARN__PAIR_OWN], both[TARN__PAIR_OWN], change[TARN__PAIR_OWN];
    weigh_pairs(logits, scores, both, change, w, g.dy, t, share, shared);
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const int64_t at = h * w.rows + t.first + t.query + tarn__pair_own(r);
      if (both[r] == -INFINITY) continue;
      const float p = expf(both[r] - g.of.most[at]) * g.of.share[at];
      sums[r] += share[0] * p * (change[r] - g.of.mean[at]);
    }
  }
  for (int r = 0; r < TARN__PAIR_OWN; r++) {
    const int64_t i = t.query + tarn__pair_own(r), j = t.key + tarn__pair_lane();
    if (i < a.span && j < a.columns) a.weight[((slice * w.heads + h) * a.span + i) * a.columns + j] = sums[r];
  }
}

// The gradient of the weight [heads, places, columns], or of the bias, from the slices; zeros beyond the longest
// sentence.
static __global__ void synthesis_places_kernel(float *grad, const float *sums, int64_t slices, int64_t heads,
                                               int64_t places, int64_t columns, int64_t span, int64_t span_columns,
                                               bool add) {
  const int64_t row = blockIdx.x, h = row / places, i = row % places;
  for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
    float sum = 0.0f;
    for (int64_t s = 0; s < slices && i < span && c < span_columns; s++)
      sum += sums[((s * heads + h) * span + i) * span_columns + c];
    grad[row * columns + c] = add ? grad[row * columns + c] + sum : sum;
  }
}

// The gradient of the source from that of its factors.
template <typename T>
static __global__ void synthesis_source_kernel(T *dsource, const float *factors, int64_t n, bool add) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tarn__set(dsource + i, add ? tarn__get(dsource[i]) + factors[i] : factors[i]);
}

// The gradient of the mix from the sums of all blocks, through the softmax of the mix: one block.
static __global__ void synthesis_mix_kernel(float *dmix, const float *sums, int64_t n, const float *mix) {
  TARN__SHARED(double, shared);
  double of[2] = {};
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) of[0] += (double)sums[2 * i], of[1] += (double)sums[2 * i + 1];
  for (int k = 0; k < 2; k++) of[k] = tarn__block_sum(of[k], shared);
  const double first = 1.0 / (1.0 + exp((double)mix[1] - (double)mix[0]));
  const double mean = first * of[0] + (1.0 - first) * of[1];
  if (threadIdx.x == 0) dmix[0] = (float)(first * (of[0] - mean)), dmix[1] = (float)((1.0 - first) * (of[1] - mean));
}

// --- the host's side

// Memory of the backward pass, in floats.
typedef struct room {
  int64_t statistics, factors, mix, weight, bias;
  int64_t slices, span, columns;
} room;

static room room_of(const tarn__node *node) {
  const tarn__synthesis_spec *spec = (const tarn__synthesis_spec *)node->attr;
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *source = node->in[TARN__SYNTHESIS_SOURCE];
  const int64_t sentences = node->in[TARN__SYNTHESIS_OFFSETS]->cols - 1;
  const int64_t tiles = (spec->longest + TARN__PAIR - 1) / TARN__PAIR, heads = spec->heads;
  const bool random = spec->form == TARN__SYNTHESIS_RANDOM;
  const int64_t blocks = heads * tiles * (random ? tiles : 1);  // enough of them for a card
  int64_t slices = blocks > 0 ? 1024 / blocks : 1;
  slices = slices < sentences ? slices : sentences;
  room r = {};
  r.slices = slices < 1 ? 1 : slices;
  r.span = spec->longest;
  r.columns = random ? spec->longest : tarn__synthesis_width(node);
  r.statistics = 3 * heads * x->rows;
  if (node->out[TARN__SYNTHESIS_DSOURCE] && spec->form == TARN__SYNTHESIS_FACTORISED)
    r.factors = source->rows * source->cols;
  if (node->out[TARN__SYNTHESIS_DMIX]) r.mix = 2 * sentences * tiles * heads;
  const bool weight = node->dparam[TARN__SYNTHESIS_DWEIGHT] || node->dparam[TARN__SYNTHESIS_DBIAS];
  if (weight) r.weight = r.slices * heads * r.span * r.columns;
  if (weight) r.bias = r.slices * heads * r.span;
  return r;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  const room r = room_of(node);
  return (size_t)(r.statistics + r.factors + r.mix + r.weight + r.bias) * sizeof(float);
}

static tarn_status add_places(tarn__param *param, const float *sums, const room &r, int64_t heads, int64_t places,
                              int64_t columns, int64_t span_columns, cudaStream_t stream) {
  TARN__LAUNCH(synthesis_places_kernel, (unsigned)(heads * places), tarn__row_threads(columns), 0, stream,
               (float *)param->training.grad, sums, r.slices, heads, places, columns, r.span, span_columns,
               tarn__param_accumulate(param) != 0);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status weight_gradients(const tarn__node *node, const tarn__synthesis_node<T> &w, const gradients<T> &g,
                                    const room &r, float *memory, cudaStream_t stream) {
  tarn__param *weight = node->dparam[TARN__SYNTHESIS_DWEIGHT], *bias = node->dparam[TARN__SYNTHESIS_DBIAS];
  const weight_sums a = {memory, bias ? memory + r.weight : (float *)nullptr, r.slices, r.span, r.columns};
  const unsigned tiles = tarn__blocks(r.span, TARN__PAIR), heads = (unsigned)(w.heads * r.slices);
  if (w.form == TARN__SYNTHESIS_DENSE)
    TARN__LAUNCH(synthesis_dense_kernel<T>, dim3(tiles, heads, tarn__blocks(r.columns, TARN__PAIR_COLUMNS)),
                 TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float), stream, w, g, a);
  else
    TARN__LAUNCH(synthesis_random_kernel<T>, dim3(tiles, heads, tiles), TARN__PAIR_THREADS,
                 TARN__PAIR_FLOATS * sizeof(float), stream, w, g, a);
  if (weight) TARN_TRY(add_places(weight, a.weight, r, w.heads, w.places, weight->cols, r.columns, stream));
  if (bias) TARN_TRY(add_places(bias, a.bias, r, w.heads, w.places, 1, 1, stream));
  return TARN_STATUS_OK;
}

template <typename T>
static gradients<T> gradients_of(const tarn__node *node, const tarn__synthesis_node<T> &w, const room &r) {
  const tarn__tensor *dx = node->out[TARN__SYNTHESIS_DX], *dsource = node->out[TARN__SYNTHESIS_DSOURCE];
  const int64_t d = w.heads * w.width, each = r.statistics / 3;
  float *memory = (float *)node->scratch;
  gradients<T> g = {};
  g.dy = (const T *)node->in[TARN__SYNTHESIS_DY]->data;
  if (dx && w.mix) g.dqueries = (T *)dx->data, g.dkeys = g.dqueries + d;
  if (dx) g.dvalues = (T *)dx->data + (w.mix ? 2 * d : 0);
  if (dsource) g.dsource = (T *)dsource->data;
  g.of = {memory, memory + each, memory + 2 * each};
  if (r.factors) g.factors = memory + r.statistics;
  if (r.mix) g.of_mix = memory + r.statistics + r.factors;
  g.add_x = node->in[TARN__SYNTHESIS_PREVIOUS_X] != NULL;
  g.add_source = node->in[TARN__SYNTHESIS_PREVIOUS_SOURCE] != NULL;
  return g;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__synthesis_node<T> w = tarn__synthesis_of<T>(node, false);
  const room r = room_of(node);
  const gradients<T> g = gradients_of<T>(node, w, r);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *dmix = node->out[TARN__SYNTHESIS_DMIX];
  const int64_t across = w.form == TARN__SYNTHESIS_DENSE && w.source_width > w.width ? w.source_width : w.width;
  const unsigned blocks = (unsigned)(w.sentences * w.tiles);
  if (r.factors)
    TARN__CUDA(cudaMemsetAsync(g.factors, 0, (size_t)r.factors * sizeof(float), stream), "clearing a gradient");
  TARN__LAUNCH(synthesis_queries_kernel<T>, dim3(blocks, (unsigned)w.heads, tarn__blocks(across, TARN__PAIR_COLUMNS)),
               TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float), stream, w, g);
  if (r.factors)
    TARN__LAUNCH(synthesis_source_kernel<T>, tarn__blocks(r.factors, 256), 256, 0, stream, g.dsource, g.factors,
                 r.factors, g.add_source);
  if (dmix)
    TARN__LAUNCH(synthesis_mix_kernel, 1, 256, TARN__WARP_SIZE * sizeof(double), stream, (float *)dmix->data, g.of_mix,
                 (int64_t)blocks * w.heads, w.mix);
  if (g.dvalues)
    TARN__LAUNCH(synthesis_keys_kernel<T>, dim3(blocks, (unsigned)w.heads, tarn__blocks(w.width, TARN__PAIR_COLUMNS)),
                 TARN__PAIR_THREADS, TARN__PAIR_FLOATS * sizeof(float), stream, w, g);
  if (!node->dparam[0] && !node->dparam[1]) return TARN_STATUS_OK;
  float *memory = (float *)node->scratch + r.statistics + r.factors + r.mix;
  return weight_gradients<T>(node, w, g, r, memory, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__SYNTHESIS_DY]->dtype, exec, node);
}

void tarn__cuda_synthesis_backward_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SYNTHESIS_BACKWARD].run = backward_node;
  kernels[TARN__OP_SYNTHESIS_BACKWARD].scratch = scratch;
}

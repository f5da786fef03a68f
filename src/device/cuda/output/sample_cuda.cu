// Drawing the next token: what ops/sampler.c does, a block for each draw, with the same sums in the same order.
//
// The candidates of a draw are a list of keys in the scratch (output_select.h), in the order of their ids or of the
// row. Top-k and the nucleus take the best of a list, put in order a batch at a time, into the other of two lists;
// there the best is first, while the sampler has it last.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"
#include "device/cuda/output/output_select.h"

extern "C" {
#include "ops/sample.h"
#include "ops/sampling_uniform.h"
}

enum { BATCH = 1024, BLOCKS = 64, MOST_ROOMS = 256 };  // BLOCKS: of weights, as in the sampler

typedef struct sample_work {
  const float *values;
  const int32_t *ids, *draws;  // ids: NULL for all words
  int64_t cols, width, count;
  tarn__sample_attr attr;
  uint64_t *room;  // two lists a block, [width] each
  float *out;
  int32_t *out_ids;
} sample_work;

typedef struct sample_shared {
  uint64_t keys[BATCH];
  double weights[BATCH], of[BLOCKS], total;
  uint64_t best[TARN__WARP_SIZE];
  int counts[TARN__WARP_SIZE], found, done, block;
  bool stop;
} sample_shared;

struct list_keys {
  const uint64_t *list;
  __device__ uint64_t operator()(int64_t i) const { return list[i]; }
};

// A list of candidates; item(i) is number i in the sampler's order.
struct candidates {
  const uint64_t *list;
  int64_t count;
  bool best_first;
  double scale, best;  // 1 / temperature; the log-probability that weighs 1
  const float *row;    // log-probabilities by id, where the keys have none
  __device__ uint64_t item(int64_t i) const { return list[best_first ? count - 1 - i : i]; }
  __device__ float value(uint64_t key) const { return row ? row[tarn__key_id(key)] : tarn__key_value(key); }
  __device__ double surplus(uint64_t key) const { return ((double)value(key) - best) * scale; }
  __device__ double weight(uint64_t key) const { return exp(surplus(key)); }
};

static __device__ bool is_banned(const sample_work &w, int32_t id, bool ends) {
  bool banned = !ends && id == w.attr.eos;
  for (int b = 0; b < w.attr.banned_count; b++) banned |= id == w.attr.banned[b];
  return banned;
}

// Lists key_at(0) .. key_at(n - 1) in this order, without zeros; `list` may be what key_at() reads. Returns how many.
template <typename K>
static __device__ int64_t list_keys_of(uint64_t *list, int64_t n, const K &key_at, sample_shared *s) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  int64_t listed = 0;
  for (int64_t first = 0; first < n; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    const uint64_t key = i < n ? key_at(i) : 0;
    const unsigned all = __ballot_sync(TARN__WARP, key != 0);
    if (lane == 0) s->counts[warp] = __popc(all);
    __syncthreads();
    int64_t at = listed + __popc(all & ((1u << lane) - 1u));
    for (int v = 0; v < (int)blockDim.x / TARN__WARP_SIZE; v++) {
      if (v < warp) at += s->counts[v];
      listed += s->counts[v];
    }
    if (key != 0) list[at] = key;
    __syncthreads();
  }
  return listed;
}

struct row_candidates {
  const sample_work &w;
  const int32_t *draw;
  __device__ uint64_t operator()(int64_t i) const {
    const int64_t row = draw[TARN__DRAW_ROW];
    const int32_t id = w.ids ? w.ids[row * w.width + i] : (int32_t)i;
    const bool drawn = id >= 0 && !is_banned(w, id, draw[TARN__DRAW_ENDS] != 0);
    return drawn ? tarn__key_of(w.values[row * w.cols + i], id) : 0;
  }
};

struct heavy_candidates {
  const candidates &c;
  double least;
  __device__ uint64_t operator()(int64_t i) const { return c.weight(c.list[i]) >= least ? c.list[i] : 0; }
};

// The best candidates go to the list `to`, the best first, until there are `most` of them or their weights reach
// `mass`; weights are not looked at if it is infinite. Returns how many.
static __device__ int64_t take_best(uint64_t *to, const candidates &c, int64_t most, double mass, sample_shared *s) {
  const list_keys key_at = {c.list};
  uint64_t below = ~(uint64_t)0;
  int64_t taken = 0;
  double total = 0.0;  // of thread 0
  while (taken < c.count && taken < most) {
    const int64_t left = (most < c.count ? most : c.count) - taken;
    const int wanted = left < BATCH ? (int)left : BATCH;
    const bool rest = c.count - taken == wanted;
    const uint64_t least = rest ? 0 : tarn__key_threshold(key_at, c.count, wanted, below, s->counts);
    tarn__key_collect(s->keys, BATCH, key_at, c.count, least, below, &s->found);
    for (int i = threadIdx.x; i < wanted; i += blockDim.x) {
      const int rank = tarn__key_rank(s->keys, wanted, s->keys[i]);
      to[taken + rank] = s->keys[i];
      if (mass < INFINITY) s->weights[rank] = c.weight(s->keys[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int done = mass < INFINITY ? 0 : wanted;
      while (done < wanted && (total < mass || taken + done == 0)) total += s->weights[done++];
      s->done = done;
      s->stop = done < wanted;
    }
    __syncthreads();
    below = to[taken + wanted - 1];
    taken += s->done;
    if (s->stop) break;
    __syncthreads();
  }
  return taken;
}

// The weights of blocks of candidates and their sum, each added in order.
static __device__ void sum_weights(const candidates &c, sample_shared *s) {
  const int64_t size = (c.count + BLOCKS - 1) / BLOCKS;
  __syncthreads();
  if (threadIdx.x < BLOCKS) {
    const int64_t first = threadIdx.x * size, end = first + size < c.count ? first + size : c.count;
    double sum = 0.0;
    for (int64_t i = first; i < end; i++) sum += c.weight(c.item(i));
    s->of[threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    s->total = 0.0;
    for (int b = 0; b < BLOCKS; b++) s->total += s->of[b];
  }
  __syncthreads();
}

// The most typical candidates of the list `from` go to the list `to`, as in the sampler. The keys of `from` are
// changed.
static __device__ void take_typical(uint64_t *to, uint64_t *from, candidates *c, const float *row, double share,
                                    sample_shared *s) {
  sum_weights(*c, s);
  const double total = s->total, log_total = log(total);
  const int64_t size = (c->count + BLOCKS - 1) / BLOCKS;
  __syncthreads();
  if (threadIdx.x < BLOCKS) {
    const int64_t first = threadIdx.x * size, end = first + size < c->count ? first + size : c->count;
    double sum = 0.0;
    for (int64_t i = first; i < end; i++) sum += c->weight(c->item(i)) * (log_total - c->surplus(c->item(i)));
    s->of[threadIdx.x] = sum;
  }
  __syncthreads();
  double entropy = 0.0;
  for (int b = 0; b < BLOCKS; b++) entropy += s->of[b];
  entropy /= total;
  for (int64_t i = threadIdx.x; i < c->count; i += blockDim.x) {
    const double off = log_total - c->surplus(from[i]) - entropy;
    from[i] = tarn__key_of(-(float)fabs(off), tarn__key_id(from[i]));
  }
  __syncthreads();
  c->row = row;
  c->count = take_best(to, *c, c->count, share * total, s);
  c->list = to;
  c->best_first = true;
}

// The candidate that `uniform` draws; `best` where the rounded sums leave none. In thread 0.
static __device__ uint64_t draw_one(const candidates &c, double uniform, uint64_t best, sample_shared *s) {
  const int64_t size = (c.count + BLOCKS - 1) / BLOCKS;
  double wanted = uniform * s->total;
  if (threadIdx.x == 0) {
    int b = 0;
    while (b < BLOCKS - 1 && wanted >= s->of[b]) wanted -= s->of[b++];
    s->block = b;
    s->stop = false;
  }
  __syncthreads();
  const int64_t first = s->block * size, end = first + size < c.count ? first + size : c.count;
  uint64_t drawn = best;
  for (int64_t from = first; from < end && !s->stop; from += BATCH) {
    const int count = end - from < BATCH ? (int)(end - from) : BATCH;
    for (int i = threadIdx.x; i < count; i += blockDim.x) s->weights[i] = c.weight(c.item(from + i));
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < count && !s->stop; i++) {
        wanted -= s->weights[i];
        if (wanted < 0.0) {
          drawn = c.item(from + i);
          s->stop = true;
        }
      }
    __syncthreads();
  }
  __syncthreads();
  return drawn;
}

// Leaves the candidates that may be drawn; what they weigh is in s->of and s->total.
static __device__ void narrow(const tarn__sampling &how, const float *row, uint64_t *const lists[2], candidates *c,
                              sample_shared *s) {
  int at = 0;  // the list with the candidates
  if (how.top_k > 0 && how.top_k < c->count) {
    c->count = take_best(lists[1 - at], *c, how.top_k, INFINITY, s);
    c->list = lists[at = 1 - at];
    c->best_first = true;
  }
  sum_weights(*c, s);
  if (how.top_p < 1.0) {
    const double mass = how.top_p * s->total;
    c->count = take_best(lists[1 - at], *c, c->count, mass, s);
    c->list = lists[at = 1 - at];
    c->best_first = true;
    sum_weights(*c, s);
  }
  if (how.min_p > 0.0) {
    c->count = list_keys_of(lists[at], c->count, heavy_candidates{*c, how.min_p}, s);
    sum_weights(*c, s);
  }
  if (tarn__sampling_typical(&how)) {
    take_typical(lists[1 - at], lists[at], c, row, how.typical_p, s);
    sum_weights(*c, s);
  }
}

static __device__ void draw_for(const sample_work &w, int64_t number, sample_shared *s) {
  const int32_t *draw = w.draws + number * TARN__DRAW_WORDS;
  const tarn__sampling how = tarn__draw_how(draw);
  const float *row = w.values + draw[TARN__DRAW_ROW] * w.cols;
  uint64_t *const lists[2] = {w.room + 2 * (int64_t)blockIdx.x * w.width,
                              w.room + (2 * (int64_t)blockIdx.x + 1) * w.width};
  const int64_t count = list_keys_of(lists[0], w.width, row_candidates{w, draw}, s);
  candidates c = {lists[0], count, false, 1.0 / how.temperature, 0.0, NULL};
  uint64_t best = 0, drawn = 0;
  for (int64_t i = threadIdx.x; i < c.count; i += blockDim.x)
    if (c.list[i] > best) best = c.list[i];
  best = tarn__block_best(best, s->best);
  if (c.count > 0) {
    c.best = (double)tarn__key_value(best);
    narrow(how, row, lists, &c, s);
    if (c.row) best = c.list[0];
    const uint64_t key = (uint64_t)(uint32_t)draw[TARN__DRAW_KEY] | (uint64_t)(uint32_t)draw[TARN__DRAW_KEY + 1] << 32;
    drawn = draw_one(
        c, tarn__sampling_number(how.seed, key, (uint32_t)draw[TARN__DRAW_SAMPLE], (uint32_t)draw[TARN__DRAW_POSITION]),
        best, s);
  }
  if (threadIdx.x > 0) return;
  w.out_ids[number] = c.count > 0 ? tarn__key_id(drawn) : -1;
  w.out[2 * number] = c.count > 0 ? c.value(drawn) : -INFINITY;
  w.out[2 * number + 1] = row[w.ids ? w.width : w.attr.eos];
}

static __global__ void sample_kernel(sample_work w) {
  TARN__SHARED(sample_shared, s);
  for (int64_t number = blockIdx.x; number < w.count; number += gridDim.x) {
    draw_for(w, number, s);
    __syncthreads();
  }
}

// Blocks, each with room for the candidates of a draw.
static int64_t rooms(const tarn__node *node) {
  return node->out[0]->rows < MOST_ROOMS ? node->out[0]->rows : (int64_t)MOST_ROOMS;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(2 * rooms(node) * tarn__sample_width(node)) * sizeof(uint64_t);
}

static tarn_status sample(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *values = node->in[TARN__SAMPLE_VALUES], *ids = node->in[TARN__SAMPLE_IDS];
  sample_work w = {};
  w.values = (const float *)values->data;
  w.ids = ids ? (const int32_t *)ids->data : NULL;
  w.draws = (const int32_t *)node->in[TARN__SAMPLE_DRAWS]->data;
  w.cols = values->cols;
  w.width = tarn__sample_width(node);
  w.count = node->out[0]->rows;
  w.attr = *(const tarn__sample_attr *)node->attr;
  w.room = (uint64_t *)node->scratch;
  w.out = (float *)node->out[0]->data;
  w.out_ids = (int32_t *)node->out[1]->data;
  TARN__LAUNCH(sample_kernel, (unsigned)rooms(node), w.width <= 4096 ? 128u : 1024u, sizeof(sample_shared),
               tarn__cuda_stream(exec->stream), w);
  return TARN_STATUS_OK;
}

void tarn__cuda_sample_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SAMPLE].run = sample;
  kernels[TARN__OP_SAMPLE].scratch = scratch;
}

// Selection from logits in three short passes over a row in cache: the maximum of every block of words; the sum of
// exponentials; and the words of those blocks that reach the bound below which no word can be among the best.
#include <float.h>
#include <math.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/output/output_top_kernels.h"
#include "ops/output_top.h"

enum { BLOCK = 128, PIECE = 16 };

static size_t scratch_floats(int64_t words) { return tarn__row_floats((words + BLOCK - 1) / BLOCK); }

static float block_max(const float *x, int64_t n) {
  if (n < BLOCK) return tarn__row_max(x, n);
  tarn__vec most = tarn__vec_load(x);
  for (int64_t i = TARN__VEC_LANES; i < BLOCK; i += TARN__VEC_LANES) most = tarn__vec_max(most, tarn__vec_load(x + i));
  return tarn__vec_max_lane(most)[0];
}

static float sum_of_exponentials(const float *x, float shift, int64_t n) {
  const float to_base_2 = 1.44269504088896341f;
  tarn__vec sums[2] = {{0}, {0}};
  int64_t i = 0;
  for (; i + 2 * TARN__VEC_LANES <= n; i += 2 * TARN__VEC_LANES) {
    sums[0] += tarn__vec_exp2((tarn__vec_load(x + i) - shift) * to_base_2);
    sums[1] += tarn__vec_exp2((tarn__vec_load(x + i + TARN__VEC_LANES) - shift) * to_base_2);
  }
  float sum = tarn__vec_sum_lanes(sums[0] + sums[1])[0];
  for (; i < n; i++) sum += tarn__row_exp(x[i] - shift);
  return sum;
}

static float log_sum_below(const float *x, float most, int64_t n) {
  return most + (float)log((double)sum_of_exponentials(x, most, n));
}

static float log_sum(const float *logits, int64_t words) {
  return log_sum_below(logits, tarn__row_max(logits, words), words);
}

// The best so far, as a heap with the worst of them at its root. Ids may be NULL: then only values are kept.
typedef struct heap {
  float *values;
  int32_t *ids;
  int64_t count, limit;
} heap;

// Whether (value, id) is worse than item i: a smaller value, or a higher id.
static inline bool is_worse(const heap *h, float value, int32_t id, int64_t i) {
  return value != h->values[i] ? value < h->values[i] : h->ids && id > h->ids[i];
}

static inline void put(heap *h, int64_t i, float value, int32_t id) {
  h->values[i] = value;
  if (h->ids) h->ids[i] = id;
}

static inline int32_t id_at(const heap *h, int64_t i) { return h->ids ? h->ids[i] : 0; }

// Replaces the root of the first `count` items.
static void sink(heap *h, float value, int32_t id, int64_t count) {
  int64_t i = 0;
  for (;;) {
    int64_t child = 2 * i + 1;
    if (child >= count) break;
    if (child + 1 < count && is_worse(h, h->values[child + 1], id_at(h, child + 1), child)) child++;
    if (is_worse(h, value, id, child)) break;
    put(h, i, h->values[child], id_at(h, child));
    i = child;
  }
  put(h, i, value, id);
}

// Items come with increasing ids, so one that equals the root is worse.
static void offer(heap *h, float value, int32_t id) {
  if (h->count == h->limit) {
    if (value > h->values[0]) sink(h, value, id, h->count);
    return;
  }
  int64_t i = h->count++;
  for (; i > 0 && is_worse(h, value, id, (i - 1) / 2); i = (i - 1) / 2)
    put(h, i, h->values[(i - 1) / 2], id_at(h, (i - 1) / 2));
  put(h, i, value, id);
}

// Best first.
static void sort(heap *h) {
  for (int64_t last = h->count - 1; last > 0; last--) {
    const float value = h->values[last];
    const int32_t id = id_at(h, last);
    put(h, last, h->values[0], id_at(h, 0));
    sink(h, value, id, last);
  }
}

// Offers the words [first, end) that reach `least`, which is finite.
static void offer_block(heap *h, const float *logits, int64_t first, int64_t end, float least) {
  for (int64_t begin = first; begin < end; begin += PIECE) {
    const float bound = h->count == h->limit ? h->values[0] : least;
    const int64_t stop = begin + PIECE < end ? begin + PIECE : end;
    if (stop - begin == PIECE) {
      int some = 0;
#pragma omp simd reduction(| : some)
      for (int64_t i = 0; i < PIECE; i++) some |= logits[begin + i] >= bound;
      if (!some) continue;
    }
    for (int64_t i = begin; i < stop; i++)
      if (logits[i] >= bound) offer(h, logits[i], (int32_t)i);
  }
}

static void row(float *values, int32_t *ids, const float *logits, int64_t words, const tarn__output_top_attr *attr,
                float *maxima) {
  const int64_t best = attr->best, blocks = (words + BLOCK - 1) / BLOCK;
  // As many blocks as words are wanted have a maximum that reaches the bound, so at least as many words do.
  heap bounds = {values, NULL, 0, best};
  float most = -INFINITY;
  for (int64_t b = 0; b < blocks; b++) {
    maxima[b] = block_max(logits + b * BLOCK, words - b * BLOCK < BLOCK ? words - b * BLOCK : BLOCK);
    most = maxima[b] > most ? maxima[b] : most;
    offer(&bounds, maxima[b], 0);
  }
  const float bound = bounds.count == best && values[0] > -FLT_MAX ? values[0] : -FLT_MAX;
  const float shift = log_sum_below(logits, most, words);
  heap found = {values, ids, 0, best};
  for (int64_t b = 0; b < blocks; b++)
    if (maxima[b] >= bound)
      offer_block(&found, logits, b * BLOCK, b * BLOCK + BLOCK < words ? b * BLOCK + BLOCK : words, bound);
  sort(&found);
  for (int64_t i = 0; i < found.count; i++) values[i] -= shift;
  for (int64_t i = found.count; i < best; i++) put(&found, i, -INFINITY, -1);
  values[best] = logits[attr->always] - shift;
}

const tarn__output_top_kernels TARN__FAST(tarn__output_top_kernels) = {row, scratch_floats, log_sum};

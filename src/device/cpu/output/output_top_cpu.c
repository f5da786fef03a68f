// Selection from logits visit by visit, in three short passes over each, while it is in the cache: the maximum of every
// block of words; the sum of exponentials; and the words of those blocks that reach the bound below which no word can
// be among the best.
#include <float.h>
#include <math.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/output/output_top_kernels.h"
#include "ops/output_top.h"

enum { BLOCK = 128 };

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

// A visit's words relative to the largest, or to the least number if none is finite.
static tarn__top_part part_of(const float *x, float most, int64_t n) {
  const float shift = most < -FLT_MAX ? -FLT_MAX : most;
  return (tarn__top_part){shift, sum_of_exponentials(x, shift, n)};
}

// In the order of the visits.
static float log_sum_of(const tarn__top_part *parts, int64_t count) {
  float most = parts[0].shift;
  double sum = (double)parts[0].sum;
  for (int64_t i = 1; i < count; i++) {
    const tarn__top_part *p = &parts[i];
    if (p->shift > most) {
      sum = sum * (double)tarn__row_exp(most - p->shift) + (double)p->sum;
      most = p->shift;
    } else {
      sum += (double)(p->sum * tarn__row_exp(p->shift - most));
    }
  }
  return most + (float)log(sum);
}

static float log_sum(const float *logits, int64_t words, tarn__top_part *parts) {
  const int64_t visits = tarn__top_visits(words);
  for (int64_t v = 0; v < visits; v++) {
    const int64_t first = v * TARN__TOP_VISIT, n = words - first < TARN__TOP_VISIT ? words - first : TARN__TOP_VISIT;
    parts[v] = part_of(logits + first, tarn__row_max(logits + first, n), n);
  }
  return log_sum_of(parts, visits);
}

// tarn__top_found is a heap with the worst at its root.

// Whether (value, id) is worse than item i: a smaller value, or a higher id.
static inline bool is_worse(const tarn__top_found *h, float value, int32_t id, int64_t i) {
  return value != h->values[i] ? value < h->values[i] : id > h->ids[i];
}

static inline void put(tarn__top_found *h, int64_t i, float value, int32_t id) {
  h->values[i] = value;
  h->ids[i] = id;
}

// Replaces the root of the first `count` items.
static void sink(tarn__top_found *h, float value, int32_t id, int64_t count) {
  int64_t i = 0;
  for (;;) {
    int64_t child = 2 * i + 1;
    if (child >= count) break;
    if (child + 1 < count && is_worse(h, h->values[child + 1], h->ids[child + 1], child)) child++;
    if (is_worse(h, value, id, child)) break;
    put(h, i, h->values[child], h->ids[child]);
    i = child;
  }
  put(h, i, value, id);
}

static void offer(tarn__top_found *h, float value, int32_t id) {
  if (h->count == h->limit) {
    if (!is_worse(h, value, id, 0)) sink(h, value, id, h->count);
    return;
  }
  int64_t i = h->count++;
  for (; i > 0 && is_worse(h, value, id, (i - 1) / 2); i = (i - 1) / 2)
    put(h, i, h->values[(i - 1) / 2], h->ids[(i - 1) / 2]);
  put(h, i, value, id);
}

// Best first.
static void sort(tarn__top_found *h) {
  for (int64_t last = h->count - 1; last > 0; last--) {
    const float value = h->values[last];
    const int32_t id = h->ids[last];
    put(h, last, h->values[0], h->ids[0]);
    sink(h, value, id, last);
  }
}

// Bit i: lane i of v is at least `bound`; no lane with NaN is.
static inline uint32_t reaching(tarn__vec v, float bound) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(bound), _CMP_GE_OQ);
#elif defined(__AVX2__)
  return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)v, _mm256_set1_ps(bound), _CMP_GE_OQ));
#else
  uint32_t bits = 0;
  for (int i = 0; i < TARN__VEC_LANES; i++) bits |= (uint32_t)(v[i] >= bound) << i;
  return bits;
#endif
}

// Offers words [0, n), of which the first has the id `first`, that reach `least`, which is not -INFINITY.
static void offer_block(tarn__top_found *h, const float *logits, int64_t first, int64_t n, float least) {
  int64_t begin = 0;
  for (; begin + TARN__VEC_LANES <= n; begin += TARN__VEC_LANES) {
    const float bound = h->count == h->limit && h->values[0] > least ? h->values[0] : least;
    uint32_t some = reaching(tarn__vec_load(logits + begin), bound);
    for (; some != 0; some &= some - 1) {
      const int64_t i = begin + __builtin_ctz(some);
      offer(h, logits[i], (int32_t)(first + i));
    }
  }
  for (; begin < n; begin++)
    if (logits[begin] >= least) offer(h, logits[begin], (int32_t)(first + begin));
}

// A bound that at least `count` words of a visit of n reach: of the largest word of each lane the one with as many that
// are at least as large. No bound if there are fewer lanes.
static float bound_by_lanes(const float *logits, int64_t n, int64_t count) {
  if (count > TARN__VEC_LANES || n % TARN__VEC_LANES != 0) return -FLT_MAX;
  tarn__vec most = tarn__vec_load(logits);
  for (int64_t i = TARN__VEC_LANES; i < n; i += TARN__VEC_LANES) most = tarn__vec_max(most, tarn__vec_load(logits + i));
  const tarn__vec all = most;
  float bound = -FLT_MAX;
  for (;;) {
    const float least = -tarn__vec_max_lane(-most)[0];
    if (!(least > bound) || __builtin_popcount(reaching(all, least)) < count) return bound;
    bound = least;
    most = tarn__vec_select(most > least, most, tarn__vec_all(INFINITY));
  }
}

// A bound that the words to be found reach, which is not -INFINITY.
static float bound_of(const tarn__top_found *h, const float *logits, int64_t n) {
  const float bound = h->count == h->limit ? h->values[0] : bound_by_lanes(logits, n, h->limit);
  return bound > -FLT_MAX ? bound : -FLT_MAX;
}

static tarn__top_part visit(tarn__top_found *found, const float *logits, int64_t first, int64_t n) {
  enum { BLOCKS = TARN__TOP_VISIT / BLOCK };
  float maxima[BLOCKS], most = -INFINITY;
  const int64_t blocks = (n + BLOCK - 1) / BLOCK;
  for (int64_t b = 0; b < blocks; b++) {
    maxima[b] = block_max(logits + b * BLOCK, n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK);
    most = maxima[b] > most ? maxima[b] : most;
  }
  const tarn__top_part part = part_of(logits, most, n);
  const float bound = bound_of(found, logits, n);
  if (most < bound) return part;
  for (int64_t b = 0; b < blocks; b++)
    if (maxima[b] >= bound)
      offer_block(found, logits + b * BLOCK, first + b * BLOCK, n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK, bound);
  return part;
}

static void join(tarn__top_found *found, const tarn__top_found *other) {
  for (int64_t i = 0; i < other->count; i++) offer(found, other->values[i], other->ids[i]);
}

static void finish(float *values, int32_t *ids, tarn__top_found *found, const tarn__top_part *parts, int64_t visits,
                   float always) {
  const float shift = log_sum_of(parts, visits);
  const int64_t best = found->limit;
  sort(found);
  for (int64_t i = 0; i < best; i++) {
    const bool there = i < found->count;
    ids[i] = there ? found->ids[i] : -1;
    values[i] = there ? found->values[i] - shift : -INFINITY;
  }
  values[best] = always - shift;
}

static void row(float *values, int32_t *ids, const float *logits, int64_t words, const tarn__output_top_attr *attr,
                tarn__top_part *parts) {
  tarn__top_found found = {values, ids, 0, attr->best};
  const int64_t visits = tarn__top_visits(words);
  for (int64_t v = 0; v < visits; v++) {
    const int64_t first = v * TARN__TOP_VISIT, n = words - first < TARN__TOP_VISIT ? words - first : TARN__TOP_VISIT;
    parts[v] = visit(&found, logits + first, first, n);
  }
  finish(values, ids, &found, parts, visits, logits[attr->always]);
}

const tarn__output_top_kernels TARN__FAST(tarn__output_top_kernels) = {row, log_sum, visit, join, finish};

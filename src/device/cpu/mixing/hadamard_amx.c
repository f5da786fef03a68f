// Fast Walsh-Hadamard transforms of BF16 rows, with the near stages by tiles. H of order n is H' (x) H32 with H' of
// order n / 32: a row viewed as a matrix X [n / 32, 32] becomes H' X H32. The product with H32, whose elements 1 and -1
// are exact in BF16, takes two instructions for 512 elements. The far stages, H', are sums of registers, which need no
// shuffles. In the three rounds,
//   1: near, far   2: far, near   3: near, far
// both pairs of far stages are one pass in fp32 with the signs between them. So all sums are in fp32, and the inputs of
// the second and the third product are rounded to BF16.
//
// Two tiles of 512 elements, 2 rows of 512 or 8 of 128, go through each step together: an item. Two items alternate,
// half a round apart, so that the tiles multiply one of them while registers sum the other.
#include <string.h>

#include "device/cpu/isa/amx_config.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/hadamard_kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  SEGMENT = 32,   // elements of a row of a tile: the order of the near stages
  SEGMENTS = 16,  // rows of a tile
  TILE = TARN__HADAMARD_AMX_TILE,
  TILES = TARN__HADAMARD_AMX_TILES
};
_Static_assert(TILE == SEGMENT * SEGMENTS, "what the scratch is counted with");
_Static_assert(TILES == 2, "each has two tile registers for its sums");

// The rows of an item between the steps of a transform.
typedef struct rows_on_way {
  uint16_t narrow[TILES][TILE];
  float sums[TILES][TILE];
} rows_on_way;

typedef struct work {
  rows_on_way ways[2];
  float total[TILES][TILE];  // over the transforms of one group of rows
  float zero[TILE];
} work;
_Static_assert(sizeof(work) == TARN__HADAMARD_AMX_FLOATS * sizeof(float), "what the scratch is counted with");

// The signs of a transform: as bits to flip, as floats, and times the scale.
typedef struct table {
  uint16_t first[TILE], last[TILE];
  float middle[TILE], factor[TILE];
} table;
_Static_assert(sizeof(table) == TARN__HADAMARD_AMX_TABLE * sizeof(float), "what the scratch is counted with");

// H32 as two tiles of B: lines of 16 pairs of terms.
static void load_near(void) {
  _Alignas(64) uint16_t pairs[2][SEGMENTS][SEGMENT];
  for (int k = 0; k < SEGMENT; k++)
    for (int column = 0; column < SEGMENT; column++)
      pairs[column / 16][k / 2][column % 16 * 2 + k % 2] = __builtin_popcount(k & column) % 2 ? 0xBF80 : 0x3F80;
  tarn__amx_written();
  _tile_loadd(6, pairs[0], 64);
  _tile_loadd(7, pairs[1], 64);
}

// Begins the near stages of a tile, whose sums are then in two tile registers.
INLINE void near_begin(const rows_on_way *way, int tile) {
  tarn__amx_written();
  if (tile == 0) {
    _tile_loadd(4, way->narrow[0], 64);
    _tile_zero(0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_zero(1);
    _tile_dpbf16ps(1, 4, 7);
  } else {
    _tile_loadd(5, way->narrow[1], 64);
    _tile_zero(2);
    _tile_dpbf16ps(2, 5, 6);
    _tile_zero(3);
    _tile_dpbf16ps(3, 5, 7);
  }
}

INLINE void near_end(rows_on_way *way, int tile) {
  if (tile == 0) {
    _tile_stored(0, way->sums[0], SEGMENT * 4);
    _tile_stored(1, way->sums[0] + 16, SEGMENT * 4);
  } else {
    _tile_stored(2, way->sums[1], SEGMENT * 4);
    _tile_stored(3, way->sums[1] + 16, SEGMENT * 4);
  }
}

// H' of order `count` on each `count` registers.
INLINE void far_stages(__m512 v[SEGMENTS], int count) {
#pragma GCC unroll 4
  for (int h = count / 2; h > 0; h /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < SEGMENTS; i++) {
      if (i & h) continue;
      const __m512 difference = _mm512_sub_ps(v[i], v[i + h]);
      v[i] = _mm512_add_ps(v[i], v[i + h]);
      v[i + h] = difference;
    }
}

// Half of every row of a tile. `half` is the first column.
INLINE void load_half(__m512 v[SEGMENTS], const float *sums, int half) {
#pragma GCC unroll 16
  for (int i = 0; i < SEGMENTS; i++) v[i] = _mm512_load_ps(sums + i * SEGMENT + half);
}

INLINE void far_twice(rows_on_way *way, const table *signs, int t, int count) {
  for (int half = 0; half < SEGMENT; half += 16) {
    __m512 v[SEGMENTS];
    load_half(v, way->sums[t], half);
    far_stages(v, count);
#pragma GCC unroll 16
    for (int i = 0; i < SEGMENTS; i++)
      v[i] = _mm512_mul_ps(v[i], _mm512_load_ps(signs->middle + i % count * SEGMENT + half));
    far_stages(v, count);
#pragma GCC unroll 16
    for (int i = 0; i < SEGMENTS; i++)
      _mm256_store_si256((__m256i *)(way->narrow[t] + i * SEGMENT + half), (__m256i)_mm512_cvtneps_pbh(v[i]));
  }
}

// Between the products of the second and the third round: only signs.
INLINE void turn(rows_on_way *way, const table *signs, int t, int count) {
#pragma GCC unroll 16
  for (int i = 0; i < SEGMENTS; i++) {
    const float *sums = way->sums[t] + i * SEGMENT;
    const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(sums + 16), _mm512_load_ps(sums));
    const __m512i bits = _mm512_load_si512(signs->last + i % count * SEGMENT);
    _mm512_store_si512(way->narrow[t] + i * SEGMENT, _mm512_xor_si512(narrow, bits));
  }
}

// The final operation on the rows of a transform: act(factor * x + add), stored as the total of transforms so far or,
// narrow, in the tensor.
typedef struct target {
  const float *factor;
  const float *add;  // rows at a distance of `add_stride`
  int64_t add_stride;
  float *total;
  bool narrow, relu;
} target;

INLINE void far_last_of(rows_on_way *way, const target *to, int t, int count, bool narrow, bool relu) {
  for (int half = 0; half < SEGMENT; half += 16) {
    __m512 v[SEGMENTS];
    load_half(v, way->sums[t], half);
    far_stages(v, count);
#pragma GCC unroll 16
    for (int i = 0; i < SEGMENTS; i++) {
      const int64_t row = t * (SEGMENTS / count) + i / count, column = i % count * SEGMENT + half;
      const float *add = to->add + row * to->add_stride + column;
      v[i] = _mm512_fmadd_ps(v[i], _mm512_load_ps(to->factor + column), _mm512_loadu_ps(add));
      if (relu) v[i] = _mm512_max_ps(_mm512_setzero_ps(), v[i]);  // keeps NaN
      if (narrow)
        _mm256_store_si256((__m256i *)(way->narrow[t] + i * SEGMENT + half), (__m256i)_mm512_cvtneps_pbh(v[i]));
      else
        _mm512_store_ps(to->total + t * TILE + i * SEGMENT + half, v[i]);
    }
  }
}

INLINE void far_last(rows_on_way *way, const target *to, int t, int count) {
  if (!to->narrow)
    far_last_of(way, to, t, count, false, false);
  else if (to->relu)
    far_last_of(way, to, t, count, true, true);
  else
    far_last_of(way, to, t, count, true, false);
}

// Stores rows of n elements. Whole lines written with non-temporal stores need not be read first, which takes less than
// half of the time if the tensor is not cached.
static void send_rows(const rows_on_way *way, uint16_t *to, int64_t stride, int64_t rows, int64_t n, bool past) {
  const uint16_t *from = way->narrow[0];
  for (int64_t r = 0; r < rows; r++, to += stride)
    for (int64_t i = 0; i < n; i += 32, from += 32) {
      const __m512i line = _mm512_load_si512(from);
      if (past)
        _mm512_stream_si512((__m512i *)(to + i), line);
      else
        _mm512_storeu_si512(to + i, line);
    }
}

// The bits to flip for n signs.
static void bits_of(uint16_t *bits, const float *signs, int64_t n) {
  for (int64_t i = 0; i < n; i += 32) {
    const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(signs + i + 16), _mm512_loadu_ps(signs + i));
    _mm512_store_si512(bits + i, _mm512_and_si512(narrow, _mm512_set1_epi16(INT16_MIN)));
  }
}

static void take_signs(table *to, const tarn__hadamard_job *job, int64_t transform, float scale) {
  const int64_t n = job->shape.width;
  const float *signs = job->signs + tarn__hadamard_signs_at(&job->shape, transform);
  if (!job->transposed) bits_of(to->first, signs, n);
  bits_of(to->last, signs + (job->transposed ? 1 : 2) * n, n);
  memcpy(to->middle, signs + (job->transposed ? 2 : 1) * n, (size_t)n * sizeof *signs);
  for (int64_t i = 0; i < n; i++) to->factor[i] = job->transposed ? scale * signs[i] : scale;
}

// Loads rows [first, first + rows) from column `at` on, with the first signs or under the mask, padded with zeros.
static void take_rows(rows_on_way *way, const tarn__hadamard_job *job, const table *signs, int64_t first, int64_t rows,
                      int64_t at) {
  const int64_t n = job->shape.width;
  uint16_t *to = way->narrow[0];
  for (int64_t r = 0; r < rows; r++, to += n) {
    const int64_t from = (first + r) * job->from_cols + at;
    for (int64_t i = 0; i < n; i += 32) {
      __m512i x = _mm512_loadu_si512((const uint16_t *)job->from + from + i);
      if (!job->transposed) x = _mm512_xor_si512(x, _mm512_load_si512(signs->first + i));
      if (job->mask) {
        // Above 0, and not NaN: no sign bit, and from the smallest normal number to infinity.
        const __m512i m = _mm512_loadu_si512((const uint16_t *)job->mask + from + i);
        const __m512i above = _mm512_sub_epi16(m, _mm512_set1_epi16(0x0080));
        x = _mm512_maskz_mov_epi16(_mm512_cmple_epu16_mask(above, _mm512_set1_epi16(0x7F80 - 0x0080)), x);
      }
      _mm512_store_si512(to + i, x);
    }
  }
  if (rows * n < TILES * TILE) memset(to, 0, (size_t)(TILES * TILE - rows * n) * sizeof *to);
}

// Prefetches the next rows while these are transformed. A row reads pieces of a row of the tensor, a pattern that the
// hardware prefetcher does not recognise.
static void fetch_rows(const tarn__hadamard_job *job, int64_t first, int64_t rows, int64_t at) {
  const int64_t n = job->shape.width;
  for (int64_t r = first; r < first + rows; r++)  // none if rows is below 0
    for (int64_t i = 0; i < n; i += 32) {
      const int64_t from = r * job->from_cols + at + i;
      _mm_prefetch((const char *)((const uint16_t *)job->from + from), _MM_HINT_T0);
      if (job->mask) _mm_prefetch((const char *)((const uint16_t *)job->mask + from), _MM_HINT_T0);
    }
}

// Loads the previous contents of the tensor as floats.
static void take_total(work *w, const tarn__hadamard_job *job, int64_t first, int64_t rows, int64_t at) {
  const int64_t n = job->shape.width;
  float *total = (float *)(void *)w->total;  // rows continue from tile to tile
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i += 16) {
      const __m256i *from = (const void *)((const uint16_t *)job->to + (first + r) * job->to_cols + at + i);
      const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16);
      _mm512_store_ps(total + r * n + i, _mm512_castsi512_ps(wide));
    }
}

// A transform of the rows [first, first + rows), which fit into the tiles.
typedef struct item {
  rows_on_way *way;
  const table *signs;
  target to;
  int64_t first, rows, from_at, to_at;
  bool opens;  // its total starts from the previous contents of the tensor
} item;

// All transforms in order: groups of rows, in each of them regions, and in each region terms.
typedef struct walk {
  const tarn__hadamard_job *job;
  work *w;
  const table *tables;
  tarn__hadamard_cut cut;
  int64_t most;  // rows of a group
  int64_t first, last, region, term;
  int way;
} walk;

static bool goes_on(const walk *at) { return at->first < at->last; }

// The next transform with its rows.
static item next_item(walk *at) {
  const tarn__hadamard_job *job = at->job;
  const int64_t t = tarn__hadamard_transform_of(&job->shape, job->transposed, at->region, at->term);
  const tarn__hadamard_ends ends = tarn__hadamard_ends_of(&job->shape, t);
  const int64_t left = at->last - at->first, ahead = left - at->most;
  item x = {.way = &at->w->ways[at->way], .signs = &at->tables[t], .first = at->first};
  x.rows = left < at->most ? left : at->most;
  x.from_at = job->transposed ? ends.out_at : ends.in_at;
  x.to_at = job->transposed ? ends.in_at : ends.out_at;
  x.opens = at->term == 0 && job->accumulate;
  x.to = (target){.factor = x.signs->factor,
                  .add = at->w->zero,
                  .total = at->w->total[0],
                  .narrow = at->term + 1 == at->cut.terms,
                  .relu = job->relu};
  if (at->term > 0 || job->accumulate) {
    x.to.add = at->w->total[0];
    x.to.add_stride = job->shape.width;
  } else if (job->bias) {
    x.to.add = job->bias + x.to_at;
  }
  take_rows(x.way, job, x.signs, x.first, x.rows, x.from_at);
  // All regions read the same rows.
  if (at->region == 0) fetch_rows(job, x.first + at->most, ahead < at->most ? ahead : at->most, x.from_at);
  at->way = 1 - at->way;
  if (++at->term < at->cut.terms) return x;
  at->term = 0;
  if (++at->region < at->cut.regions) return x;
  at->region = 0;
  at->first += at->most;
  return x;
}

typedef enum step { FAR_TWICE, TURN, FAR_LAST } step;

INLINE void step_of(const item *x, step kind, int t, int count) {
  if (kind == FAR_TWICE)
    far_twice(x->way, x->signs, t, count);
  else if (kind == TURN)
    turn(x->way, x->signs, t, count);
  else
    far_last(x->way, &x->to, t, count);
}

// Overlaps the near stages of one item with a step of another; either may be missing.
INLINE void both(const item *near, const item *x, step kind, int count) {
  for (int t = 0; near && t < TILES; t++) near_begin(near->way, t);
  for (int t = 0; t < TILES; t++) {
    if (x) step_of(x, kind, t, count);
    if (near) near_end(near->way, t);
  }
}

INLINE void finish(work *w, const tarn__hadamard_job *job, const item *near, const item *x, int count) {
  if (x && x->opens) take_total(w, job, x->first, x->rows, x->to_at);
  both(near, x, FAR_LAST, count);
  if (!x || !x->to.narrow) return;
  uint16_t *end = (uint16_t *)job->to + x->first * job->to_cols + x->to_at;
  send_rows(x->way, end, job->to_cols, x->rows, job->shape.width, job->past);
}

INLINE void run_all(walk *at, int count) {
  const tarn__hadamard_job *job = at->job;
  item a, b;
  const item *before = NULL;  // its last sums are pending
  while (goes_on(at)) {
    a = next_item(at);
    finish(at->w, job, &a, before, count);
    before = NULL;
    if (goes_on(at)) {
      b = next_item(at);
      before = &b;
    }
    both(before, &a, FAR_TWICE, count);
    both(&a, before, FAR_TWICE, count);
    both(before, &a, TURN, count);
    both(&a, before, TURN, count);
    finish(at->w, job, before, &a, count);
  }
  finish(at->w, job, NULL, before, count);
}

bool tarn__hadamard_amx_can(const tarn__hadamard_job *job) {
  const tarn__hadamard_shape *shape = &job->shape;
  const bool whole = shape->window == shape->width && shape->in % shape->width == 0 && shape->out % shape->width == 0;
  return job->dtype == TARN__BF16 && whole && (shape->width == 128 || shape->width == 256 || shape->width == 512);
}

void tarn__hadamard_amx_run(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch) {
  const int64_t n = job->shape.width;
  const float scale = (float)(job->shape.scale / ((double)n * sqrt((double)n)));
  work *w = (work *)(void *)scratch;
  table *tables = (table *)(void *)(w + 1);
  memset(w->zero, 0, sizeof w->zero);
  for (int64_t t = 0; t < job->shape.blocks * job->shape.parts; t++) take_signs(&tables[t], job, t, scale);
  tarn__amx_configure();
  load_near();
  walk at = {.job = job, .w = w, .tables = tables, .most = TILES * TILE / n, .first = first, .last = last};
  at.cut = tarn__hadamard_cut_of(&job->shape, job->transposed);
  if (n == 512)
    run_all(&at, 16);
  else if (n == 256)
    run_all(&at, 8);
  else
    run_all(&at, 4);
  _mm_sfence();  // non-temporal stores complete before other threads read them
  _tile_release();
}

// Fast Walsh-Hadamard transforms of BF16 rows, the near stages by tiles. H of order n is H' (x) H32 with H' of order
// n / 32: a row seen as a matrix X [n / 32, 32] becomes H' X H32. The product with H32, whose elements 1 and -1 BF16
// holds, is two instructions for 512 elements. The far stages, H', are sums of registers, which need no shuffles. Of
// the three rounds,
//   1: near, far   2: far, near   3: near, far
// both pairs of far stages are one pass in fp32 with the signs between them. So all sums are of fp32, and what goes
// into the second and into the third product is rounded to BF16.
//
// Four tiles of 512 elements, 4 rows of 512 or 16 of 128, go through each step together, so that all of them stay in L1
// and the steps of one tile do not wait for each other. (With eight of them transforms take a tenth longer.)
#include <string.h>

#include "device/cpu/amx_config.h"
#include "device/cpu/hadamard_kernels.h"
#include "device/cpu/row_cpu.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  SEGMENT = 32,   // elements of a row of a tile: the order of the near stages
  SEGMENTS = 16,  // rows of a tile
  TILE = TARN__HADAMARD_AMX_TILE,
  TILES = TARN__HADAMARD_AMX_TILES
};
_Static_assert(TILE == SEGMENT * SEGMENTS, "what the scratch is counted with");
_Static_assert(TILES % 2 == 0, "two tiles take turns");

// What a group of rows is on the way of a transform.
typedef struct work {
  uint16_t narrow[TILES][TILE];
  float sums[TILES][TILE];
  float total[TILES][TILE];  // over transforms
  float zero[TILE];
} work;
_Static_assert(sizeof(work) == TARN__HADAMARD_AMX_FLOATS * sizeof(float), "what the scratch is counted with");

// The signs of a transform: as bits that are to be turned, as floats, and times the scale.
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

// The near stages of all tiles. The sums of a tile are stored while those of the next one are computed.
static void near_stages(work *w) {
  tarn__amx_written();
  _tile_loadd(4, w->narrow[0], 64);
  _tile_zero(0);
  _tile_dpbf16ps(0, 4, 6);
  _tile_zero(1);
  _tile_dpbf16ps(1, 4, 7);
  for (int t = 1; t < TILES; t += 2) {
    _tile_loadd(5, w->narrow[t], 64);
    _tile_zero(2);
    _tile_dpbf16ps(2, 5, 6);
    _tile_zero(3);
    _tile_dpbf16ps(3, 5, 7);
    _tile_stored(0, w->sums[t - 1], SEGMENT * 4);
    _tile_stored(1, w->sums[t - 1] + 16, SEGMENT * 4);
    if (t + 1 < TILES) {
      _tile_loadd(4, w->narrow[t + 1], 64);
      _tile_zero(0);
      _tile_dpbf16ps(0, 4, 6);
      _tile_zero(1);
      _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(2, w->sums[t], SEGMENT * 4);
    _tile_stored(3, w->sums[t] + 16, SEGMENT * 4);
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

INLINE void far_twice(work *w, const table *signs, int count) {
  for (int t = 0; t < TILES; t++)
    for (int half = 0; half < SEGMENT; half += 16) {
      __m512 v[SEGMENTS];
      load_half(v, w->sums[t], half);
      far_stages(v, count);
#pragma GCC unroll 16
      for (int i = 0; i < SEGMENTS; i++)
        v[i] = _mm512_mul_ps(v[i], _mm512_load_ps(signs->middle + i % count * SEGMENT + half));
      far_stages(v, count);
#pragma GCC unroll 16
      for (int i = 0; i < SEGMENTS; i++)
        _mm256_store_si256((__m256i *)(w->narrow[t] + i * SEGMENT + half), (__m256i)_mm512_cvtneps_pbh(v[i]));
    }
}

// Between the products of the second and the third round: signs alone.
INLINE void turn(work *w, const table *signs, int count) {
  for (int t = 0; t < TILES; t++)
#pragma GCC unroll 16
    for (int i = 0; i < SEGMENTS; i++) {
      const float *sums = w->sums[t] + i * SEGMENT;
      const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(sums + 16), _mm512_load_ps(sums));
      const __m512i bits = _mm512_load_si512(signs->last + i % count * SEGMENT);
      _mm512_store_si512(w->narrow[t] + i * SEGMENT, _mm512_xor_si512(narrow, bits));
    }
}

// What becomes of the rows of a transform: act(factor * x + add), as the total of transforms so far or, narrow, for the
// tensor.
typedef struct target {
  const float *factor;
  const float *add;  // rows that are `add_stride` apart
  int64_t add_stride;
  bool narrow, relu;
} target;

INLINE void far_last_of(work *w, const target *to, int count, bool narrow, bool relu) {
  for (int t = 0; t < TILES; t++)
    for (int half = 0; half < SEGMENT; half += 16) {
      __m512 v[SEGMENTS];
      load_half(v, w->sums[t], half);
      far_stages(v, count);
#pragma GCC unroll 16
      for (int i = 0; i < SEGMENTS; i++) {
        const int64_t row = t * (SEGMENTS / count) + i / count, column = i % count * SEGMENT + half;
        const float *add = to->add + row * to->add_stride + column;
        v[i] = _mm512_fmadd_ps(v[i], _mm512_load_ps(to->factor + column), _mm512_loadu_ps(add));
        if (relu) v[i] = _mm512_max_ps(_mm512_setzero_ps(), v[i]);  // a NaN stays
        if (narrow)
          _mm256_store_si256((__m256i *)(w->narrow[t] + i * SEGMENT + half), (__m256i)_mm512_cvtneps_pbh(v[i]));
        else
          _mm512_store_ps(w->total[t] + i * SEGMENT + half, v[i]);
      }
    }
}

INLINE void far_last(work *w, const target *to, int count) {
  if (!to->narrow)
    far_last_of(w, to, count, false, false);
  else if (to->relu)
    far_last_of(w, to, count, true, true);
  else
    far_last_of(w, to, count, true, false);
}

// Rows of n elements to where they belong. Whole lines that go past the caches need not be read before: that takes less
// than half of the time where the tensor is in no cache.
static void send_rows(const work *w, uint16_t *to, int64_t stride, int64_t rows, int64_t n, bool past) {
  const uint16_t *from = w->narrow[0];
  for (int64_t r = 0; r < rows; r++, to += stride)
    for (int64_t i = 0; i < n; i += 32, from += 32) {
      const __m512i line = _mm512_load_si512(from);
      if (past)
        _mm512_stream_si512((__m512i *)(to + i), line);
      else
        _mm512_storeu_si512(to + i, line);
    }
}

// The bits to turn for n signs.
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

// Rows [first, first + rows) from column `at` on, with the first signs or under the mask; zeros behind them.
static void take_rows(work *w, const tarn__hadamard_job *job, const table *signs, int64_t first, int64_t rows,
                      int64_t at) {
  const int64_t n = job->shape.width;
  uint16_t *to = w->narrow[0];
  for (int64_t r = 0; r < rows; r++, to += n) {
    const int64_t from = (first + r) * job->from_cols + at;
    for (int64_t i = 0; i < n; i += 32) {
      __m512i x = _mm512_loadu_si512((const uint16_t *)job->from + from + i);
      if (!job->transposed) x = _mm512_xor_si512(x, _mm512_load_si512(signs->first + i));
      if (job->mask) {
        // Above 0, and no NaN: no sign, and from the smallest normal number to infinity.
        const __m512i m = _mm512_loadu_si512((const uint16_t *)job->mask + from + i);
        const __m512i above = _mm512_sub_epi16(m, _mm512_set1_epi16(0x0080));
        x = _mm512_maskz_mov_epi16(_mm512_cmple_epu16_mask(above, _mm512_set1_epi16(0x7F80 - 0x0080)), x);
      }
      _mm512_store_si512(to + i, x);
    }
  }
  memset(to, 0, (size_t)(TILES * TILE - rows * n) * sizeof *to);
}

// What was in the tensor before, as floats.
static void take_total(work *w, const tarn__hadamard_job *job, int64_t first, int64_t rows, int64_t at) {
  const int64_t n = job->shape.width;
  float *total = (float *)(void *)w->total;  // rows go on from tile to tile
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i += 16) {
      const __m256i *from = (const void *)((const uint16_t *)job->to + (first + r) * job->to_cols + at + i);
      const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16);
      _mm512_store_ps(total + r * n + i, _mm512_castsi512_ps(wide));
    }
}

INLINE void transform(work *w, const table *signs, const target *to, int count) {
  near_stages(w);
  far_twice(w, signs, count);
  near_stages(w);
  turn(w, signs, count);
  near_stages(w);
  far_last(w, to, count);
}

// Rows [first, first + rows): those that fit into the tiles.
static void run_group(work *w, const table *tables, const tarn__hadamard_job *job, int64_t first, int64_t rows) {
  const tarn__hadamard_cut cut = tarn__hadamard_cut_of(&job->shape, job->transposed);
  const int64_t n = job->shape.width;
  for (int64_t region = 0; region < cut.regions; region++)
    for (int64_t term = 0; term < cut.terms; term++) {
      const int64_t t = tarn__hadamard_transform_of(&job->shape, job->transposed, region, term);
      const tarn__hadamard_ends ends = tarn__hadamard_ends_of(&job->shape, t);
      const int64_t from_at = job->transposed ? ends.out_at : ends.in_at;
      const int64_t to_at = job->transposed ? ends.in_at : ends.out_at;
      const table *signs = &tables[t];
      take_rows(w, job, signs, first, rows, from_at);
      if (term == 0 && job->accumulate) take_total(w, job, first, rows, to_at);
      target to = {.factor = signs->factor, .add = w->zero, .narrow = term + 1 == cut.terms, .relu = job->relu};
      if (term > 0 || job->accumulate) {
        to.add = w->total[0];
        to.add_stride = n;
      } else if (job->bias) {
        to.add = job->bias + to_at;
      }
      if (n == 512)
        transform(w, signs, &to, 16);
      else if (n == 256)
        transform(w, signs, &to, 8);
      else
        transform(w, signs, &to, 4);
      uint16_t *end = (uint16_t *)job->to + first * job->to_cols + to_at;
      if (to.narrow) send_rows(w, end, job->to_cols, rows, n, job->past);
    }
}

bool tarn__hadamard_amx_can(const tarn__hadamard_job *job) {
  const tarn__hadamard_shape *shape = &job->shape;
  const bool whole = shape->window == shape->width && shape->in % shape->width == 0 && shape->out % shape->width == 0;
  return job->dtype == TARN__BF16 && whole && (shape->width == 128 || shape->width == 256 || shape->width == 512);
}

void tarn__hadamard_amx_run(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch) {
  const int64_t n = job->shape.width, rows = TILES * TILE / n;
  const float scale = (float)(job->shape.scale / ((double)n * sqrt((double)n)));
  work *w = (work *)(void *)scratch;
  table *tables = (table *)(void *)(w + 1);
  memset(w->zero, 0, sizeof w->zero);
  for (int64_t t = 0; t < job->shape.blocks * job->shape.parts; t++) take_signs(&tables[t], job, t, scale);
  tarn__amx_configure();
  load_near();
  for (int64_t r = first; r < last; r += rows) run_group(w, tables, job, r, last - r < rows ? last - r : rows);
  _mm_sfence();  // what went past the caches is there before other threads read it
  _tile_release();
}

// Products of fp32 numbers as sums of bf16 parts (gemm_split_kernels.h) by Intel's matrix extension (Henry, Tang and
// Heinecke 2019, "Leveraging the bfloat16 Artificial Intelligence Datatype for Higher-Precision Computations"). With
// two parts each, a b is a1 b1 + a1 b2 + a2 b1; with three also a2 b2, a1 b3 and a3 b1. The omitted terms are below
// 2^-16 of the product, or 2^-24.
//
// Parts are loaded to tiles once for several products: with three parts, 16 tile loads serve 24 multiplications.
#include <immintrin.h>
#include <string.h>

#include "device/cpu/gemm/gemm_split_kernels.h"
#include "device/cpu/isa/amx_config.h"
#include "device/cpu/isa/transpose_amx.h"

enum {
  GROUP = TARN__SPLIT_GROUP,
  STEP = TARN__SPLIT_STEP,
  TILE = TARN__SPLIT_TILE,
  UNITS = 16,
  BLOCK = 2 * GROUP,
  PARTS = 3,
  TERMS = TARN__SPLIT_STEPS * STEP
};

#define INLINE static inline __attribute__((always_inline))

// Tiles 0 to 3: sums; 4, 5: A; 6, 7: B. All are full size.

// Sums of `rows` groups of A with two groups of B, over one part of each.
INLINE void add_products(int rows) {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if (rows == 1) return;
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

INLINE void load_a(const char *a, int64_t group, int rows) {
  _tile_loadd(4, a, 64);
  if (rows == 2) _tile_loadd(5, a + group, 64);
}

INLINE void load_b(const char *b, int64_t group) {
  _tile_loadd(6, b, 64);
  _tile_loadd(7, b + group, 64);
}

// The values of two parts at the same place in their units: terms t and t + 16.
static void add_parts(__m512 value[2], const char *unit, int parts) {
  value[0] = value[1] = _mm512_setzero_ps();
  for (int p = 0; p < parts; p++) {
    const __m512i both = _mm512_loadu_si512(unit + p * TILE);
    value[0] = _mm512_add_ps(value[0], _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)));
    value[1] = _mm512_add_ps(value[1], _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32((int)0xFFFF0000))));
  }
}

// An infinite part times a small part of the other number, which may be zero or have the opposite sign, differs from
// the product of the whole numbers, and sums of parts may overflow at a different point. So sums that are not finite
// are recomputed from whole numbers, in order: infinities are kept, and NaNs arise as they would without splitting.
static __attribute__((noinline)) void sum_again(float *sums, const tarn__split_block *g, const char *a, const char *b,
                                                int64_t rows) {
  float left[BLOCK][TERMS], right[TERMS][BLOCK];
  const int64_t step = g->parts * TILE, group = g->steps * step;
  for (int64_t s = 0; s < g->steps; s++)
    for (int64_t i = 0; i < BLOCK; i++) {
      __m512 value[2];
      if (i < rows) {
        add_parts(value, a + i / GROUP * group + s * step + i % GROUP * 64, g->parts);
        _mm512_storeu_ps(&left[i][s * STEP], value[0]);
        _mm512_storeu_ps(&left[i][s * STEP + UNITS], value[1]);
      }
      const int64_t half = i / GROUP, unit = i % GROUP;
      add_parts(value, b + half * group + s * step + unit * 64, g->parts);
      _mm512_storeu_ps(&right[s * STEP + unit][half * GROUP], value[0]);
      _mm512_storeu_ps(&right[s * STEP + unit + UNITS][half * GROUP], value[1]);
    }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < BLOCK; j += 16) {
      float *at = sums + i * BLOCK + j;
      const __mmask16 wrong = _mm512_fpclass_ps_mask(_mm512_loadu_ps(at), 0x99);
      if (!wrong) continue;
      __m512 sum = _mm512_setzero_ps();
      for (int64_t t = 0; t < g->steps * STEP; t++)
        sum = _mm512_fmadd_ps(_mm512_set1_ps(left[i][t]), _mm512_loadu_ps(&right[t][j]), sum);
      _mm512_mask_storeu_ps(at, wrong, sum);
    }
}

// Zero times a finite number is zero.
INLINE bool all_finite(const float *sums, int64_t rows) {
  const __m512 zero = _mm512_setzero_ps();
  __m512 seen[2] = {zero, zero};
  for (int64_t r = 0; r < rows; r++)
    for (int half = 0; half < 2; half++)
      seen[half] = _mm512_fmadd_ps(_mm512_load_ps(sums + r * BLOCK + 16 * half), zero, seen[half]);
  return _mm512_cmp_ps_mask(_mm512_add_ps(seen[0], seen[1]), zero, _CMP_NEQ_UQ) == 0;
}

INLINE void finish_half(float *c, const float *sums, const float *bias, __mmask16 here, const tarn__split_block *g) {
  __m512 v = _mm512_load_ps(sums);
  if (g->accumulate) v = _mm512_add_ps(_mm512_maskz_loadu_ps(here, c), v);
  if (bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(here, bias));
  if (g->relu)  // keeps NaN
    v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), _mm512_setzero_ps());
  _mm512_mask_storeu_ps(c, here, v);
}

// Sums of a block awaiting the final operations.
typedef struct pending {
  float *sums;  // [BLOCK][BLOCK]
  const char *a, *b;
  int64_t i, j, rows;
} pending;

// Writes rows [first, first + count) of the sums, as far as they exist, to C.
INLINE void finish(const pending *p, const tarn__split_block *g, int64_t first, int64_t count) {
  const int64_t end = first + count < p->rows ? first + count : p->rows;
  if (first == 0 && !all_finite(p->sums, p->rows)) sum_again(p->sums, g, p->a, p->b, p->rows);
  for (int half = 0; half < 2; half++) {
    const int64_t column = p->j + 16 * half, left = g->n - column;
    if (left <= 0) return;
    const __mmask16 here = left >= 16 ? 0xFFFF : (__mmask16)((1u << left) - 1);
    const float *bias = g->bias ? g->bias + column : NULL;
    float *c = g->c + (p->i + first) * g->ldc + column;
    for (int64_t r = first; r < end; r++, c += g->ldc) finish_half(c, p->sums + r * BLOCK + 16 * half, bias, here, g);
  }
}

// Sums of `rows` groups of A with two groups of B, to [rows * GROUP][BLOCK]. With three parts the small products come
// first, so that they are rounded as small numbers: only the sum of the large ones then causes rounding, once for each
// pair of terms. Between the steps, sums of the previous block are written to C: the processor's out-of-order window is
// too short to overlap this work by itself.
INLINE void sum_up(const pending *now, const pending *before, const tarn__split_block *g, int parts, int rows) {
  enum { SHARE = BLOCK / TARN__SPLIT_STEPS };
  const int64_t steps = g->steps, step = parts * TILE, group = steps * step;
  const char *a = now->a, *b = now->b;
  float *sums = now->sums;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; s++) {
    const char *as = a + s * step, *bs = b + s * step;
    load_b(bs, group);
    if (parts == 3) {
      load_a(as + 2 * TILE, group, rows);
      add_products(rows);
    }
    load_a(as + TILE, group, rows);
    add_products(rows);
    if (parts == 3) {
      load_b(bs + TILE, group);
      add_products(rows);
      load_a(as, group, rows);
      add_products(rows);
      load_b(bs + 2 * TILE, group);
      add_products(rows);
    } else {
      load_a(as, group, rows);
      add_products(rows);
      load_b(bs + TILE, group);
      add_products(rows);
    }
    if (before->rows > 0) finish(before, g, s * SHARE, s < steps - 1 ? SHARE : BLOCK);
  }
  for (int64_t s = 0; parts == 3 && s < steps; s++) {
    load_a(a + s * step, group, rows);
    load_b(b + s * step, group);
    add_products(rows);
  }
  _tile_stored(0, sums, BLOCK * 4);
  _tile_stored(1, sums + 16, BLOCK * 4);
  if (rows == 1) return;
  _tile_stored(2, sums + GROUP * BLOCK, BLOCK * 4);
  _tile_stored(3, sums + GROUP * BLOCK + 16, BLOCK * 4);
}

INLINE void multiply_blocks(const tarn__split_block *g, int parts) {
  _Alignas(64) float places[2][BLOCK * BLOCK];
  const int64_t group = g->steps * parts * TILE;
  pending before = {0};
  int place = 0;
  for (int64_t i = 0; i < g->m; i += BLOCK)
    for (int64_t j = 0; j < g->n; j += BLOCK) {
      const pending now = {.sums = places[place ^= 1],
                           .a = g->a + i / GROUP * group,
                           .b = g->b + j / GROUP * group,
                           .i = i,
                           .j = j,
                           .rows = g->m - i < BLOCK ? g->m - i : BLOCK};
      if (now.rows > GROUP)
        sum_up(&now, &before, g, parts, 2);
      else
        sum_up(&now, &before, g, parts, 1);
      before = now;
    }
  finish(&before, g, 0, BLOCK);
}

static void multiply(const tarn__split_block *g) {
  tarn__amx_configure();
  tarn__amx_written();
  if (g->parts == 3)
    multiply_blocks(g, 3);
  else
    multiply_blocks(g, 2);
  _tile_release();
}

INLINE __m512i upper(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi32((int)0xFFFF0000)); }

// The nearest bf16, in the upper half. Ties are rounded away from zero, which takes one instruction less than ties to
// even.
INLINE __m512i nearest(__m512 x) { return upper(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000))); }

enum { NEARLY_INFINITE = 0x7F7F8000 };  // from here on the nearest bf16 is infinite

// The first part of numbers among which some are infinite, NaN, or would become infinite; *rest: the remainder, of
// which `kept` bits are kept in large numbers, so that no part is rounded up either.
static __attribute__((noinline)) __m512i first_of_large(__m512 x, __m512i kept, __m512 *rest) {
  const __m512i bits = _mm512_castps_si512(x), magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 large = _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(NEARLY_INFINITE));
  const __mmask16 finite = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
  const __mmask16 nan = _mm512_cmpgt_epu32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
  __m512i first = _mm512_mask_mov_epi32(nearest(x), large, upper(bits));
  first = _mm512_mask_or_epi32(first, nan, first, _mm512_set1_epi32(0x7FC00000));
  const __m512i left = _mm512_castps_si512(_mm512_maskz_sub_ps(finite, x, _mm512_castsi512_ps(first)));
  *rest = _mm512_castsi512_ps(_mm512_mask_and_epi32(left, large, left, kept));
  return first;
}

// Units of terms x and terms y, by part.
INLINE void split(__m512i units[PARTS], __m512 x, __m512 y, int parts) {
  const __m512i all = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i largest =
      _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x), all), _mm512_and_si512(_mm512_castps_si512(y), all));
  __m512i px, py;
  __m512 rx, ry;
  if (__builtin_expect(_mm512_cmpge_epu32_mask(largest, _mm512_set1_epi32(NEARLY_INFINITE)) != 0, 0)) {
    const __m512i kept = _mm512_set1_epi32(parts == 2 ? (int)0xFFFF0000 : -1);
    px = first_of_large(x, kept, &rx);
    py = first_of_large(y, kept, &ry);
  } else {
    px = nearest(x);
    py = nearest(y);
    rx = _mm512_sub_ps(x, _mm512_castsi512_ps(px));
    ry = _mm512_sub_ps(y, _mm512_castsi512_ps(py));
  }
  units[0] = _mm512_or_si512(_mm512_srli_epi32(px, 16), py);
  px = nearest(rx);
  py = nearest(ry);
  units[1] = _mm512_or_si512(_mm512_srli_epi32(px, 16), py);
  if (parts == 2) return;
  // At most eight bits remain, except for denormal numbers.
  px = _mm512_castps_si512(_mm512_sub_ps(rx, _mm512_castsi512_ps(px)));
  py = _mm512_castps_si512(_mm512_sub_ps(ry, _mm512_castsi512_ps(py)));
  units[2] = _mm512_or_si512(_mm512_srli_epi32(px, 16), upper(py));
}

static __mmask16 lanes(int64_t left) { return left >= 16 ? 0xFFFF : left <= 0 ? 0 : (__mmask16)((1u << left) - 1); }

// Row i of a tile in memory order: terms i and i + 16 of 16 lines (across), or the 32 terms of line i.
INLINE void take_row(__m512 row[2], const tarn__split_lines *l, int64_t first, int64_t term, int64_t i) {
  const __mmask16 here = lanes(l->count - first);
  for (int half = 0; half < 2; half++) {
    row[half] = _mm512_setzero_ps();
    if (l->across) {
      const int64_t t = term + i + 16 * half;
      if (t < l->k) row[half] = _mm512_maskz_loadu_ps(here, l->from + t * l->ld + first);
    } else if (first + i < l->count) {
      const int64_t t = term + 16 * half;
      const __mmask16 some = lanes(l->k - t);
      if (some) row[half] = _mm512_maskz_loadu_ps(some, l->from + (first + i) * l->ld + t);
    }
  }
}

// The tiles of lines [first, first + 16) of the step that begins with `term`.
INLINE void pack_tiles(char *out, const tarn__split_lines *l, int64_t first, int64_t term, int parts) {
  __m512i units[PARTS][GROUP];
  for (int64_t i = 0; i < GROUP; i++) {
    __m512 row[2];
    __m512i unit[PARTS];
    take_row(row, l, first, term, i);
    split(unit, row[0], row[1], parts);
    for (int p = 0; p < parts; p++) units[p][i] = unit[p];
  }
  for (int p = 0; p < parts; p++) {
    // Strided rows are already tiles of B, and contiguous ones tiles of A; the other cases are transposed.
    if (l->across != l->right) tarn__transpose_units(units[p]);
    for (int64_t i = 0; i < GROUP; i++) _mm512_store_si512(out + p * TILE + i * 64, units[p][i]);
  }
}

INLINE void pack_lines(char *out, const tarn__split_lines *l, int parts) {
  const int64_t groups = (l->count + GROUP - 1) / GROUP, steps = (l->k + STEP - 1) / STEP;
  // Memory is read sequentially.
  const int64_t outer = l->across ? steps : groups, inner = l->across ? groups : steps;
  for (int64_t i = 0; i < outer; i++)
    for (int64_t j = 0; j < inner; j++) {
      const int64_t group = l->across ? j : i, step = l->across ? i : j;
      pack_tiles(out + group * l->group_bytes + step * parts * TILE, l, group * GROUP, step * STEP, parts);
    }
}

static void pack(char *out, const tarn__split_lines *l) {
  if (l->parts == 3)
    pack_lines(out, l, 3);
  else
    pack_lines(out, l, 2);
}

const tarn__split_kernels tarn__split_kernels_amx = {.pack = pack, .multiply = multiply};

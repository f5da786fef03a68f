// A tile of C is a group of rows times two registers of columns. Each step of k reads two registers of B and spreads
// one unit of every row of A over a register; with 12 rows on AVX-512 that is 24 sums in flight, more than the latency
// of the multiply-add asks for on any processor that has it.
#include <string.h>
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "ops/gemm_kernels.h"
#include "ops/gemm_pack_cpu.h"
#include "ops/row_cpu.h"

// LANES floats a register; a group has at most 3 STEP rows.
#if defined(__AVX512F__)
enum { LANES = 16, STEP = 4 };
#elif defined(__AVX2__)
enum { LANES = 8, STEP = 2 };
#else
enum { LANES = 4, STEP = 2 };
#endif
enum { PANEL = 2 * LANES, GROUP = 3 * STEP, AHEAD = 1024 };  // AHEAD: bytes of B that are fetched ahead of their use

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float vec_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t unit_any __attribute__((aligned(1), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));
typedef uint32_t units_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

// sum + a b, of F32 or of pairs of BF16; a is one unit for all lanes.
INLINE vec add_product(vec sum, uint32_t a, units_any b, bool pairs) {
#if defined(__AVX512BF16__)
  if (pairs) return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int32_t)a), (__m512bh)b);
#else
  (void)pairs;
#endif
  return sum + tarn__row_bits_to_float(a) * (vec)b;
}

// Two registers of a row of C go to memory.
INLINE void store_row(void *c, tarn__dtype dtype, vec low, vec high) {
  if (dtype == TARN__F32) {
    ((vec_any *)c)[0] = low;
    ((vec_any *)c)[1] = high;
    return;
  }
#if defined(__AVX512BF16__)
  _mm512_storeu_si512(c, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
#else
  float row[PANEL];
  memcpy(row, &low, sizeof low);
  memcpy(row + LANES, &high, sizeof high);
  tarn__row_to_bf16(c, row, PANEL);
#endif
}

INLINE vec load_c(const void *c, tarn__dtype dtype, int half) {
  if (dtype == TARN__F32) return ((const vec_any *)c)[half];
  float row[LANES];
  vec v;
  tarn__row_from_bf16(row, (const uint16_t *)c + half * LANES, LANES);
  memcpy(&v, row, sizeof v);
  return v;
}

// A NaN stays.
INLINE vec positive(vec v) { return (vec)((mask)v & ~(v < 0.0f)); }

// What is done with the sums of a tile.
typedef struct finish {
  char *c;
  int64_t row_bytes;
  tarn__dtype dtype;
  const float *bias;
  bool accumulate, relu;
} finish;

INLINE void finish_rows(vec sums[GROUP][2], int rows, const finish *f) {
  vec bias0 = {0}, bias1 = {0};
  if (f->bias != NULL) {
    bias0 = ((const vec_any *)f->bias)[0];
    bias1 = ((const vec_any *)f->bias)[1];
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; r++) {
    char *c = f->c + r * f->row_bytes;
    vec low = sums[r][0] + bias0, high = sums[r][1] + bias1;
    if (f->accumulate) {
      low += load_c(c, f->dtype, 0);
      high += load_c(c, f->dtype, 1);
    }
    if (f->relu) {
      low = positive(low);
      high = positive(high);
    }
    store_row(c, f->dtype, low, high);
  }
}

// rows: 1 to 3 STEP. row_bytes: 0 for a packed group of A.
INLINE void tile(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows, bool pairs,
                 const finish *f) {
  vec sums[GROUP][2] = {{{0}}};
  const int64_t row = row_bytes != 0 ? row_bytes : 4, unit = row_bytes != 0 ? 4 : 4 * rows;
  // Three rows are reached from one address: base, base + row, base + 2 row.
  enum { BASES = (GROUP + 2) / 3 };
  const char *base[BASES];
  for (int i = 0; i < BASES; i++) base[i] = a + 3 * i * row;
  for (int r = 0; r < rows; r++) {
    __builtin_prefetch(f->c + r * f->row_bytes, 1);
    __builtin_prefetch(f->c + r * f->row_bytes + 64, 1);
  }
  for (int64_t u = 0; u < units; u++) {
    units_any low = ((const units_any *)b)[0], high = ((const units_any *)b)[1];
    __builtin_prefetch((const char *)b + AHEAD);
    if (PANEL * 4 > 64) __builtin_prefetch((const char *)b + AHEAD + 64);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
      uint32_t spread = *(const unit_any *)(base[r / 3] + r % 3 * row);
      sums[r][0] = add_product(sums[r][0], spread, low, pairs);
      sums[r][1] = add_product(sums[r][1], spread, high, pairs);
    }
    for (int i = 0; i < BASES; i++) base[i] += unit;
    b += PANEL;
  }
  finish_rows(sums, rows, f);
}

typedef void (*tile_function)(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f);

#define TILE(name, rows, pairs)                                                                                        \
  static void name##_packed(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f) {     \
    (void)row_bytes;                                                                                                   \
    tile(a, 0, b, units, rows, pairs, f);                                                                              \
  }                                                                                                                    \
  static void name##_as_it_lies(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f) { \
    tile(a, row_bytes, b, units, rows, pairs, f);                                                                      \
  }
TILE(tile_f32_1, STEP, false)
TILE(tile_f32_2, 2 * STEP, false)
TILE(tile_f32_3, 3 * STEP, false)
static const tile_function tiles_f32[2][3] = {{tile_f32_1_packed, tile_f32_2_packed, tile_f32_3_packed},
                                              {tile_f32_1_as_it_lies, tile_f32_2_as_it_lies, tile_f32_3_as_it_lies}};
#if defined(__AVX512BF16__)
TILE(tile_bf16_1, STEP, true)
TILE(tile_bf16_2, 2 * STEP, true)
TILE(tile_bf16_3, 3 * STEP, true)
static const tile_function tiles_bf16[2][3] = {
    {tile_bf16_1_packed, tile_bf16_2_packed, tile_bf16_3_packed},
    {tile_bf16_1_as_it_lies, tile_bf16_2_as_it_lies, tile_bf16_3_as_it_lies}};
#endif

// The sums of a tile that is not whole go from a buffer to C.
static void finish_edge(float *buffer, int64_t rows, int64_t cols, const finish *f) {
  float row[PANEL];
  for (int64_t r = 0; r < rows; r++) {
    char *c = f->c + r * f->row_bytes;
    float *sum = buffer + r * PANEL;
    if (f->bias != NULL) tarn__row_add(sum, f->bias, cols);
    if (f->accumulate) {
      tarn__row_copy(row, c, f->dtype, 0, cols);
      tarn__row_add(sum, row, cols);
    }
    for (int64_t j = 0; f->relu && j < cols; j++) sum[j] = sum[j] < 0.0f ? 0.0f : sum[j];
    tarn__row_write(c, f->dtype, 0, cols, sum);
  }
}

// The part of A that comes next is fetched into the second cache, a few lines with every tile.
typedef struct ahead {
  const char *row;  // that comes next
  int64_t row_bytes, length, at, rows, lines;
} ahead;

static ahead ahead_of(const tarn__gemm_block *g) {
  ahead next = {.row = g->next, .row_bytes = g->row_bytes, .length = 4 * g->units, .rows = g->next_rows};
  int64_t tiles = ((g->n + PANEL - 1) / PANEL) * ((g->m + GROUP - 1) / GROUP);
  int64_t lines = next.rows * (next.length / 64 + 1);
  next.lines = (lines + tiles - 1) / tiles;
  return next;
}

INLINE void fetch_ahead(ahead *next) {
  for (int64_t i = 0; i < next->lines && next->rows > 0; i++) {
    __builtin_prefetch(next->row + next->at, 0, 2);
    next->at += 64;
    if (next->at < next->length) continue;
    next->at = 0;
    next->row += next->row_bytes;
    next->rows--;
  }
}

static void multiply(const tarn__gemm_block *g, const tile_function tiles[2][3]) {
  const int64_t size = (int64_t)tarn__dtype_size(g->c_dtype);
  const tile_function *run = tiles[g->row_bytes != 0];
  const uint32_t *b = g->b;
  ahead next = ahead_of(g);
  for (int64_t j = 0; j < g->n; j += PANEL, b += PANEL * g->units) {
    int64_t cols = g->n - j < PANEL ? g->n - j : PANEL;
    const char *a = g->a;
    for (int64_t i = 0; i < g->m; i += GROUP) {
      int64_t rows = g->m - i < GROUP ? g->m - i : GROUP, group = tarn__gemm_group(rows, GROUP, STEP);
      fetch_ahead(&next);
      finish f = {(char *)g->c + (i * g->ldc + j) * size, g->ldc * size, g->c_dtype,
                  g->bias != NULL ? g->bias + j : NULL,   g->accumulate, g->relu};
      if (rows == group && cols == PANEL) {
        run[group / STEP - 1](a, g->row_bytes, b, g->units, &f);
      } else {
        TARN__ROW_ALIGNED float buffer[GROUP * PANEL];
        finish whole = {.c = (char *)buffer, .row_bytes = PANEL * sizeof(float), .dtype = TARN__F32};
        run[group / STEP - 1](a, g->row_bytes, b, g->units, &whole);
        finish_edge(buffer, rows, cols, &f);
      }
      a += group * (g->row_bytes != 0 ? g->row_bytes : 4 * g->units);
    }
  }
}

static void multiply_f32(const tarn__gemm_block *g) { multiply(g, tiles_f32); }
#if defined(__AVX512BF16__)
static void multiply_bf16(const tarn__gemm_block *g) { multiply(g, tiles_bf16); }
#endif

// The widths that occur as constants.
static void pack(uint32_t *out, const tarn__gemm_lines *l) {
  if (l->across) {
    if (l->width == PANEL)
      tarn__gemm_pack_across(out, l, PANEL);
    else if (l->width == GROUP)
      tarn__gemm_pack_across(out, l, GROUP);
    else
      tarn__gemm_pack_across(out, l, l->width);
    return;
  }
  for (int64_t first = 0; first < l->count; first += l->width, out += l->stride) {
    int64_t count = l->count - first < l->width ? l->count - first : l->width;
    if (l->arithmetic == TARN__GEMM_WIDE)
      tarn__gemm_pack_wide(out, l, first, count);
    else
      tarn__gemm_pack_along(out, l, first, count, l->arithmetic == TARN__GEMM_BF16 ? 2 : 4);
  }
}

const tarn__gemm_kernels TARN__FAST(tarn__gemm_kernels) = {.panel = PANEL,
                                                           .group = GROUP,
                                                           .step = STEP,
                                                           .pack = pack,
                                                           .multiply_f32 = multiply_f32,
#if defined(__AVX512BF16__)
                                                           .multiply_bf16 = multiply_bf16
#endif
};

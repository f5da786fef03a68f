// Products of BF16 by Intel's matrix extension (AMX-TILE, AMX-BF16): a tile register holds 16 rows of 64 bytes, and one
// instruction multiplies 16 rows of 16 units of A with 16 units of 16 columns of B. The packed B of gemm_kernels.h is
// what a tile of B is loaded from. A is read row by row: groups have 16 rows, and a packed group holds its rows one
// behind the other, [16][units], so that both kinds of A are one matrix. Compiled for this extension alone and reached
// through tarn__isa_now() only.
#include <immintrin.h>
#include <string.h>

#include "device/cpu/gemm_kernels.h"

enum { GROUP = TARN__GEMM_AMX_GROUP, PANEL = 32, UNITS = 16, BLOCK = 2 * GROUP };

enum { RESIDENT_BYTES = 512 << 10 };  // of a B that leaves room for A and C in a second cache of 2 MB

// Tiles 0 to 3: sums; 4, 5: A; 6, 7: B. All are whole.
typedef struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_config;

static void configure(void) {
  tile_config config = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  _tile_loadconfig(&config);
}

// The last units of a row or a panel, where there are fewer than a tile has, with zeros behind them.
typedef struct tail {
  int64_t units;
  _Alignas(64) uint32_t a[BLOCK][UNITS];
  _Alignas(64) uint32_t b[UNITS][PANEL];
} tail;

static void take_a_tail(tail *t, const char *a, int64_t row_bytes, int groups, int64_t first) {
  for (int r = 0; r < groups * GROUP; r++)
    memcpy(t->a[r], a + r * row_bytes + 4 * first, (size_t)t->units * sizeof(uint32_t));
}

// A tile is there when its last line is, and the processor does not see where the next tiles will come from. So what is
// wanted a panel later (of B), or at the end of a block (of C), is fetched into the second cache early; into the first
// one, rows of C that are a power of two apart would throw each other out.
static inline __attribute__((always_inline)) void fetch(const char *from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) _mm_prefetch(from + at, _MM_HINT_T1);
}

// One step of the sums of one or two groups.
static inline __attribute__((always_inline)) void step(const char *a, int64_t row_bytes, const void *b, int groups) {
  _tile_loadd(6, b, PANEL * 4);
  _tile_loadd(7, (const char *)b + 64, PANEL * 4);
  _tile_loadd(4, a, (size_t)row_bytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if (groups == 1) return;
  _tile_loadd(5, a + GROUP * row_bytes, (size_t)row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Sums of `groups` groups with one panel of B go to [groups * GROUP][PANEL].
static inline __attribute__((always_inline)) void sum_up(float *sums, const char *a, int64_t row_bytes,
                                                         const uint32_t *b, int64_t units, tail *t, int groups,
                                                         const char *ahead) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int64_t whole = units - t->units;
  for (int64_t u = 0; u < whole; u += UNITS) {
    if (ahead) fetch(ahead + u * PANEL * 4, UNITS * PANEL * 4);
    step(a + 4 * u, row_bytes, b + u * PANEL, groups);
  }
  if (t->units > 0) {
    take_a_tail(t, a, row_bytes, groups, whole);
    step((const char *)t->a, UNITS * 4, t->b, groups);
  }
  _tile_stored(0, sums, PANEL * 4);
  _tile_stored(1, sums + 16, PANEL * 4);
  if (groups == 1) return;
  _tile_stored(2, sums + GROUP * PANEL, PANEL * 4);
  _tile_stored(3, sums + GROUP * PANEL + 16, PANEL * 4);
}

// Half a row of sums goes to C.
static inline void finish_half(char *c, const float *sums, const float *bias, __mmask16 here,
                               const tarn__gemm_block *g) {
  const bool narrow = g->c_dtype == TARN__BF16;
  __m512 v = _mm512_load_ps(sums);
  if (bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(here, bias));
  if (g->accumulate && narrow) {
    const __m512i old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(here, c));
    v = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(old, 16)));
  } else if (g->accumulate) {
    v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(here, c));
  }
  if (g->relu)  // a NaN stays
    v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), _mm512_setzero_ps());
  if (narrow)
    _mm256_mask_storeu_epi16(c, here, (__m256i)_mm512_cvtneps_pbh(v));
  else
    _mm512_mask_storeu_ps(c, here, v);
}

// The lines of C that a block will be written to.
static inline __attribute__((always_inline)) void fetch_c(const tarn__gemm_block *g, int64_t i, int64_t rows,
                                                          int64_t j) {
  const int64_t size = g->c_dtype == TARN__BF16 ? 2 : 4, cols = g->n - j < PANEL ? g->n - j : PANEL;
  const char *c = (const char *)g->c + (i * g->ldc + j) * size;
  for (int64_t r = 0; r < rows; r++, c += g->ldc * size) fetch(c, cols * size);
}

static void finish(const float *sums, const tarn__gemm_block *g, int64_t i, int64_t rows, int64_t j) {
  const int64_t size = g->c_dtype == TARN__BF16 ? 2 : 4, cols = g->n - j;
  for (int half = 0; half < 2; half++) {
    const int64_t left = cols - 16 * half;
    if (left <= 0) return;
    const __mmask16 here = left >= 16 ? 0xFFFF : (__mmask16)((1u << left) - 1);
    const float *bias = g->bias ? g->bias + j + 16 * half : NULL;
    char *c = (char *)g->c + (i * g->ldc + j + 16 * half) * size;
    for (int64_t r = 0; r < rows; r++, c += g->ldc * size) finish_half(c, sums + r * PANEL + 16 * half, bias, here, g);
  }
}

// Sums of the rows from i on with the panel of columns from j on. ahead: the panel to be fetched, or NULL.
static void multiply_block(const tarn__gemm_block *g, int64_t i, int64_t j, tail *t, const char *ahead) {
  _Alignas(64) float sums[BLOCK * PANEL];
  const int64_t row_bytes = g->row_bytes != 0 ? g->row_bytes : 4 * g->units;
  const int64_t rows = g->m - i < BLOCK ? g->m - i : BLOCK;
  const char *a = (const char *)g->a + i * row_bytes;
  const uint32_t *b = g->b + j * g->units;
  fetch_c(g, i, rows, j);
  if (rows > GROUP)
    sum_up(sums, a, row_bytes, b, g->units, t, 2, ahead);
  else
    sum_up(sums, a, row_bytes, b, g->units, t, 1, ahead);
  finish(sums, g, i, rows, j);
}

static void take_b_tail(tail *t, const tarn__gemm_block *g, int64_t j) {
  memcpy(t->b, g->b + j * g->units + (g->units - t->units) * PANEL, (size_t)(t->units * PANEL) * sizeof *t->b[0]);
}

void tarn__gemm_amx_multiply(const tarn__gemm_block *g) {
  tail t = {.units = g->units % UNITS};
  configure();
  // Either all of B stays in the second cache and C is gone through row by row, or a panel of B stays in the first.
  if (g->n * g->units * 4 <= RESIDENT_BYTES) {
    for (int64_t i = 0; i < g->m; i += BLOCK)
      for (int64_t j = 0; j < g->n; j += PANEL) {
        take_b_tail(&t, g, j);
        multiply_block(g, i, j, &t, NULL);
      }
  } else {
    for (int64_t j = 0; j < g->n; j += PANEL) {
      const char *ahead = j + PANEL < g->n ? (const char *)(g->b + (j + PANEL) * g->units) : NULL;
      take_b_tail(&t, g, j);
      for (int64_t i = 0; i < g->m; i += BLOCK) multiply_block(g, i, j, &t, i == 0 ? ahead : NULL);
    }
  }
  _tile_release();
}

// A row that lies along the memory.
static void pack_along(uint32_t *out, const tarn__gemm_lines *l, int64_t first, int64_t units) {
  for (int64_t r = 0; r < GROUP; r++, out += units) {
    if (first + r >= l->count) {
      memset(out, 0, (size_t)units * sizeof *out);
      continue;
    }
    if (l->k % 2 != 0) out[units - 1] = 0;
    memcpy(out, (const uint16_t *)l->from + (first + r) * l->ld, (size_t)l->k * sizeof(uint16_t));
  }
}

// 16 x 16 units: a row becomes a column.
static inline __attribute__((always_inline)) void transpose(__m512i v[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  // Lane l of v[4 q + c] holds column 4 l + c of rows 4 q to 4 q + 3.
  for (int c = 0; c < 4; c++) {
    const __m512i even01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x88),
                  odd01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xDD);
    const __m512i even23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xDD);
    w[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    w[c + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    w[c + 8] = _mm512_shuffle_i32x4(even01, even23, 0xDD);
    w[c + 12] = _mm512_shuffle_i32x4(odd01, odd23, 0xDD);
  }
  for (int i = 0; i < 16; i++) v[i] = w[i];
}

// Rows that lie across it: two terms of k of 16 rows make 16 units, which go to 16 rows.
static void pack_across(uint32_t *out, const tarn__gemm_lines *l, int64_t first, int64_t units) {
  const int64_t left = l->count - first;
  const __mmask16 here = left >= GROUP ? 0xFFFF : (__mmask16)((1u << left) - 1);
  const uint16_t *from = (const uint16_t *)l->from + first;
  for (int64_t u = 0; u < units; u += UNITS, from += 2 * UNITS * l->ld) {
    __m512i pairs[UNITS];
    const int64_t count = units - u < UNITS ? units - u : UNITS;
    for (int64_t i = 0; i < UNITS; i++) {
      pairs[i] = _mm512_setzero_si512();
      if (i >= count) continue;
      const uint16_t *at = from + 2 * i * l->ld;
      pairs[i] = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(here, at));
      if (2 * (u + i) + 1 >= l->k) continue;
      const __m512i second = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(here, at + l->ld));
      pairs[i] = _mm512_or_si512(pairs[i], _mm512_slli_epi32(second, 16));
    }
    transpose(pairs);
    const __mmask16 whole = count == UNITS ? 0xFFFF : (__mmask16)((1u << count) - 1);
    for (int64_t r = 0; r < GROUP; r++) _mm512_mask_storeu_epi32(out + r * units + u, whole, pairs[r]);
  }
}

void tarn__gemm_amx_pack(uint32_t *out, const tarn__gemm_lines *l) {
  const int64_t units = tarn__gemm_units(l->k, TARN__GEMM_BF16);
  for (int64_t first = 0; first < l->count; first += GROUP, out += l->stride)
    if (l->across)
      pack_across(out, l, first, units);
    else
      pack_along(out, l, first, units);
}

// Products of INT8 by Intel's matrix extension (AMX-TILE, AMX-INT8): one instruction multiplies 16 rows of 64 bytes of
// A by 16 units of 16 columns of B. Both operands are those of the vector kernel: the quantised rows of A in place, and
// the panels of B. Sums are exact integers, and the operations that follow are the same in the same order, so all bits
// equal those of the vector kernel. Compiled for this extension alone and called only if tarn__isa_int8_tiles().
#include <immintrin.h>
#include <string.h>

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/isa/amx_config.h"

enum {
  ROWS = 16,
  PANEL = 32,
  UNITS = 16,
  BLOCK = 2 * ROWS,
  AHEAD = UNITS,               // units of B by which prefetching is ahead of few rows: 2 KB, one step
  LEAST_ROWS = 5,              // fewer are left to the vector kernels for few rows
  RESIDENT_BYTES = 1024 << 10  // of a B that is traversed for each block of rows
};

// Tiles 0 to 3: sums; 4, 5: A; 6, 7: B. All are full size.

// The last units of rows and panels, if they do not fill a tile, padded with zeros, and the last rows, if there are
// fewer than ROWS.
typedef struct tail {
  int64_t units;
  _Alignas(64) uint32_t a[BLOCK][UNITS];
  _Alignas(64) uint32_t b[UNITS][PANEL];
} tail;

static inline __attribute__((always_inline)) void step(const char *a, int64_t row_bytes, const void *b, int groups) {
  _tile_loadd(6, b, PANEL * 4);
  _tile_loadd(7, (const char *)b + 64, PANEL * 4);
  _tile_loadd(4, a, (size_t)row_bytes);
  _tile_dpbusd(0, 4, 6);
  _tile_dpbusd(1, 4, 7);
  if (groups == 1) return;
  _tile_loadd(5, a + ROWS * row_bytes, (size_t)row_bytes);
  _tile_dpbusd(2, 5, 6);
  _tile_dpbusd(3, 5, 7);
}

// A block of rows of A, as read by tiles.
typedef struct lines {
  const char *from;
  int64_t row_bytes;
  int groups;
} lines;

// What is prefetched meanwhile: while unit u of a panel is multiplied, if it is one of the first `units`, the lines of
// a step from there on.
typedef struct fetched {
  const uint32_t *from;
  int64_t units;
} fetched;

// Sums of a block of rows with one panel of B, to [groups * ROWS][PANEL].
static inline __attribute__((always_inline)) void sum_up(int32_t *sums, const lines *a, const uint32_t *b,
                                                         int64_t units, const tail *t, int groups, fetched next) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int64_t whole = units - t->units;
  for (int64_t u = 0; u < whole; u += UNITS) {
    if (u < next.units)
      for (int i = 0; i < 2 * UNITS; i++) _mm_prefetch((const char *)(next.from + u * PANEL + 16 * i), _MM_HINT_T0);
    step(a->from + 4 * u, a->row_bytes, b + u * PANEL, groups);
  }
  if (t->units > 0) step((const char *)t->a, UNITS * 4, t->b, groups);
  _tile_stored(0, sums, PANEL * 4);
  _tile_stored(1, sums + 16, PANEL * 4);
  if (groups == 1) return;
  _tile_stored(2, sums + ROWS * PANEL, PANEL * 4);
  _tile_stored(3, sums + ROWS * PANEL + 16, PANEL * 4);
}

// Values shared by a column of registers of C.
typedef struct column {
  __m512i zero;  // correction of the sums: the bytes of A are offset by TARN__GEMM_ZERO
  __m512 scale, bias;
  __mmask16 here;
} column;

static column column_of(const tarn__gemm_block *g, int64_t j) {
  const int64_t left = g->n - j;
  const __mmask16 here = left >= 16 ? 0xFFFF : (__mmask16)((1u << left) - 1);
  return (column){
      _mm512_mullo_epi32(_mm512_set1_epi32(TARN__GEMM_ZERO), _mm512_maskz_loadu_epi32(here, g->column_sums + j)),
      _mm512_maskz_loadu_ps(here, g->column_scales + j),
      g->bias ? _mm512_maskz_loadu_ps(here, g->bias + j) : _mm512_setzero_ps(), here};
}

// Converts integer sums of half a row to floats in C.
static inline __attribute__((always_inline)) void finish_half(char *c, const int32_t *sums, float row_scale,
                                                              const column *k, bool accumulate, bool relu,
                                                              bool narrow) {
  const __m512i whole = _mm512_sub_epi32(_mm512_load_si512(sums), k->zero);
  const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(row_scale), k->scale);
  __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, k->bias);
  if (accumulate && narrow) {
    const __m512i old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(k->here, c));
    v = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(old, 16)));
  } else if (accumulate) {
    v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k->here, c));
  }
  if (relu)  // keeps NaN
    v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), _mm512_setzero_ps());
  if (narrow)
    _mm256_mask_storeu_epi16(c, k->here, (__m256i)_mm512_cvtneps_pbh(v));
  else
    _mm512_mask_storeu_ps(c, k->here, v);
}

static void finish(const int32_t *sums, const tarn__gemm_block *g, int64_t i, int64_t rows, int64_t j) {
  const bool narrow = g->c_dtype == TARN__BF16;
  const int64_t size = narrow ? 2 : 4;
  const column left = column_of(g, j), right = column_of(g, j + 16 < g->n ? j + 16 : j);
  const bool both = j + 16 < g->n;
  char *c = (char *)g->c + (i * g->ldc + j) * size;
  const float *scales = g->row_scales + i;
  // The common case is compiled separately.
  if (both && !narrow && !g->accumulate && !g->relu) {
    for (int64_t r = 0; r < rows; r++, c += g->ldc * size) {
      finish_half(c, sums + r * PANEL, scales[r], &left, false, false, false);
      finish_half(c + 64, sums + r * PANEL + 16, scales[r], &right, false, false, false);
    }
    return;
  }
  for (int64_t r = 0; r < rows; r++, c += g->ldc * size) {
    finish_half(c, sums + r * PANEL, scales[r], &left, g->accumulate, g->relu, narrow);
    if (both) finish_half(c + 16 * size, sums + r * PANEL + 16, scales[r], &right, g->accumulate, g->relu, narrow);
  }
}

// The block of rows from i on. Rows that do not fill a group are copied to `room`, [ROWS][4 units], because reading
// beyond the last row is not allowed.
static lines take_rows(tail *t, const tarn__gemm_block *g, int64_t i, char *room) {
  const int64_t rows = g->m - i < BLOCK ? g->m - i : BLOCK, length = 4 * g->units;
  lines a = {(const char *)g->a + i * g->row_bytes, g->row_bytes, rows > ROWS ? 2 : 1};
  if (rows % ROWS != 0) {
    for (int64_t r = 0; r < rows; r++) memcpy(room + r * length, a.from + r * a.row_bytes, (size_t)length);
    a.from = room;
    a.row_bytes = length;
  }
  if (t->units > 0)
    for (int64_t r = 0; r < rows; r++)
      memcpy(t->a[r], a.from + r * a.row_bytes + length - 4 * t->units, (size_t)t->units * 4);
  tarn__amx_written();
  return a;
}

static void take_panel(tail *t, const tarn__gemm_block *g, int64_t j) {
  if (t->units == 0) return;
  memcpy(t->b, g->b + j * g->units + (g->units - t->units) * PANEL, (size_t)(t->units * PANEL) * sizeof *t->b[0]);
  tarn__amx_written();
}

// What follows panel j in B is prefetched into the L1 cache. A single block of rows reads B once, at the speed of
// memory, and is fastest if lines come in the order of their use, shortly before it.
static fetched fetched_with(const tarn__gemm_block *g, int64_t j) {
  const bool few = g->m <= BLOCK, last = j + PANEL >= g->n;
  const int64_t units = !last ? g->units : few ? g->units - AHEAD : 0;
  return (fetched){g->b + j * g->units + PANEL * (few ? AHEAD : g->units), units};
}

static void multiply_panel(const tarn__gemm_block *g, const tail *t, const lines *a, int64_t i, int64_t j, bool fetch) {
  _Alignas(64) int32_t sums[BLOCK * PANEL];
  const int64_t rows = g->m - i < BLOCK ? g->m - i : BLOCK;
  const uint32_t *b = g->b + j * g->units;
  const fetched next = fetch ? fetched_with(g, j) : (fetched){0};
  if (a->groups == 2)
    sum_up(sums, a, b, g->units, t, 2, next);
  else
    sum_up(sums, a, b, g->units, t, 1, next);
  finish(sums, g, i, rows, j);
}

void tarn__gemm_int8_amx_multiply(const tarn__gemm_block *g) {
  enum { MOST_UNITS = 1024 };  // of a chunk of k: gemm.c limits lines to 4,096 bytes
  if (g->row_bytes == 0 || g->m < LEAST_ROWS || g->units > MOST_UNITS) {
    tarn__gemm_kernels_avx512_bf16.multiply_int8(g);
    return;
  }
  _Alignas(64) char room[BLOCK * MOST_UNITS * 4];
  tail t = {.units = g->units % UNITS};
  tarn__amx_configure();
  if (g->n * g->units * 4 <= RESIDENT_BYTES) {
    for (int64_t i = 0; i < g->m; i += BLOCK) {
      const lines a = take_rows(&t, g, i, room);
      for (int64_t j = 0; j < g->n; j += PANEL) {
        take_panel(&t, g, j);
        multiply_panel(g, &t, &a, i, j, i == 0);
      }
    }
  } else {
    // Only the last block may be copied, and once is enough, unless there are parts of tiles.
    const int64_t end = (g->m - 1) / BLOCK * BLOCK;
    const lines last = take_rows(&t, g, end, room);
    for (int64_t j = 0; j < g->n; j += PANEL) {
      take_panel(&t, g, j);
      for (int64_t i = 0; i < g->m; i += BLOCK) {
        const lines a = i == end && t.units == 0 ? last : take_rows(&t, g, i, room);
        multiply_panel(g, &t, &a, i, j, i == 0);
      }
    }
  }
  _tile_release();
}

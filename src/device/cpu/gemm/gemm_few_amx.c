// Products of few rows of BF16 by vectors, from a B that is packed for matrix tiles: nearly all time is that of reading
// B from memory, of which loads of tiles keep fewer cache lines on their way. All bits are those of the tiles: within a
// step, terms at even and at odd places are summed separately by fused operations, from zero, and then together, as
// Intel defines TDPBF16PS.
#include <immintrin.h>

#include "device/cpu/gemm/gemm_finish_amx.h"
#include "device/cpu/gemm/gemm_tiles.h"

enum { PANEL = TARN__TILES_LINES, STEP = TARN__TILES_STEP_BYTES, TILE = STEP / 2, TILE_SUMS = 256, PAIRS = 16 };
enum { MOST = TARN__TILES_FEW, AHEAD = 4096 };  // bytes of a panel by which prefetching is ahead

typedef int pair_any __attribute__((aligned(1), may_alias));  // two terms of a row

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// The sums of each row with 32 columns of one or two panels.
typedef struct sums {
  __m512 of[MOST][2][2];  // [row][panel][half]
} sums;

ALWAYS_INLINE __m512 even(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }

ALWAYS_INLINE __m512 odd(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xFFFF0000u)));
}

// A step of the panels.
ALWAYS_INLINE void step(sums *s, const char *a, int64_t a_row, const char *b, int64_t b_stride, int rows, int panels) {
  __m512 evens[MOST][4], odds[MOST][4];
  const int tiles = 2 * panels;
  for (int r = 0; r < rows; r++)
    for (int t = 0; t < tiles; t++) evens[r][t] = odds[r][t] = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (int i = 0; i < PAIRS; i++) {
    for (int t = 0; t < tiles; t++) _mm_prefetch(b + t / 2 * b_stride + t % 2 * TILE + 64 * i + AHEAD, _MM_HINT_T0);
    __m512i pair[MOST];
    for (int r = 0; r < rows; r++) pair[r] = _mm512_set1_epi32(*(const pair_any *)(a + r * a_row + 4 * i));
    for (int t = 0; t < tiles; t++) {
      const __m512i pairs = _mm512_load_si512(b + t / 2 * b_stride + t % 2 * TILE + 64 * i);
      for (int r = 0; r < rows; r++) {
        evens[r][t] = _mm512_fmadd_ps(even(pair[r]), even(pairs), evens[r][t]);
        odds[r][t] = _mm512_fmadd_ps(odd(pair[r]), odd(pairs), odds[r][t]);
      }
    }
  }
  for (int r = 0; r < rows; r++)
    for (int t = 0; t < tiles; t++)
      s->of[r][t / 2][t % 2] = _mm512_add_ps(s->of[r][t / 2][t % 2], _mm512_add_ps(evens[r][t], odds[r][t]));
}

// Panel `panel` and, of two, the next one.
ALWAYS_INLINE void multiply_panels(const tarn__tiles_block *g, int64_t panel, int rows, int panels) {
  sums s;
  const char *b = (const char *)g->b + panel * g->b_stride;
  float *kept = g->sums + panel * TARN__TILES_SUMS;
  for (int r = 0; r < rows; r++)
    for (int p = 0; p < panels; p++)
      for (int half = 0; half < 2; half++)
        s.of[r][p][half] =
            g->add ? _mm512_load_ps(kept + p * TARN__TILES_SUMS + half * TILE_SUMS + r * 16) : _mm512_setzero_ps();
  for (int64_t n = 0; n < g->steps; n++)
    step(&s, (const char *)g->a + n * g->a_step, g->a_row, b + n * STEP, g->b_stride, rows, panels);
  if (!g->finish) {
    for (int r = 0; r < rows; r++)
      for (int p = 0; p < panels; p++)
        for (int half = 0; half < 2; half++)
          _mm512_store_ps(kept + p * TARN__TILES_SUMS + half * TILE_SUMS + r * 16, s.of[r][p][half]);
    return;
  }
  const tarn__tiles_result form = tarn__tiles_result_of(g->finish);
  const int64_t size = g->finish->c_dtype == TARN__BF16 ? 2 : 4;
  for (int p = 0; p < panels; p++) {
    const int64_t column = (panel + p) * PANEL;
    const tarn__tiles_columns columns = tarn__tiles_columns_of(g->finish, column, g->columns);
    for (int r = 0; r < rows; r++)
      tarn__tiles_finish_row(&columns, s.of[r][p][0], s.of[r][p][1],
                             (char *)g->finish->c + (r * g->finish->ldc + column) * size, form);
  }
}

ALWAYS_INLINE void multiply_rows(const tarn__tiles_block *g, int rows) {
  const int64_t panels = (g->columns + PANEL - 1) / PANEL;
  int64_t panel = 0;
  for (; panel + 2 <= panels; panel += 2) multiply_panels(g, panel, rows, 2);
  if (panel < panels) multiply_panels(g, panel, rows, 1);
}

void tarn__tiles_multiply_few(const tarn__tiles_block *g) {
  if (g->rows == 1)
    multiply_rows(g, 1);
  else
    multiply_rows(g, MOST);
}

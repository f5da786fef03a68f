// Tiles by Intel's matrix extension (AMX-TILE, AMX-BF16): a tile register holds 16 rows of 64 bytes, and one
// instruction multiplies 16 rows of 32 terms of A by 32 terms of 16 columns of B. Compiled for this extension alone and
// called only if tarn__isa_now() allows it.
#include <immintrin.h>
#include <string.h>

#include "device/cpu/gemm/gemm_finish_amx.h"
#include "device/cpu/gemm/gemm_tiles.h"
#include "device/cpu/isa/amx_config.h"

enum { ROWS = 16, PANEL = TARN__TILES_LINES, STEP = TARN__TILES_STEP_BYTES, TILE = STEP / 2, TILE_SUMS = 256 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// Tiles 0 to 3: sums; 4, 5: A; 6, 7: B. All are full size.

void tarn__tiles_begin(void) { tarn__amx_configure(); }

void tarn__tiles_end(void) { _tile_release(); }

// --- multiplication

// Loads the tiles of a step. A panel of A is read repeatedly and stays in the L1 cache; B comes from L2 and bypasses
// L1, where it would evict A. All four loads precede the multiplications, so they overlap those of the previous step.
ALWAYS_INLINE void load_step(const char *a, int64_t a_row, const char *b, bool both) {
  _tile_stream_loadd(6, b, 64);
  _tile_stream_loadd(7, b + TILE, 64);
  _tile_loadd(4, a, a_row);
  if (both) _tile_loadd(5, a + ROWS * a_row, a_row);
}

// One step of the sums of 32 rows, or of 16.
ALWAYS_INLINE void step(const char *a, int64_t a_row, const char *b, bool both) {
  load_step(a, a_row, b, both);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if (!both) return;
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

ALWAYS_INLINE void store_sums(float *to, bool both) {
  _tile_stored(0, to, 64);
  _tile_stored(1, to + TILE_SUMS, 64);
  if (!both) return;
  _tile_stored(2, to + 2 * TILE_SUMS, 64);
  _tile_stored(3, to + 3 * TILE_SUMS, 64);
}

// The first step of the sums of a panel of B, to which those at `from` are added unless it is NULL. The tiles still
// hold sums of the previous panel, which are stored to `before` (NULL: none) one by one, so that the multiplications of
// both panels follow each other without a gap.
ALWAYS_INLINE void first_step(const char *a, int64_t a_row, const char *b, bool both, float *before,
                              const float *from) {
#define TAKE_TURN(tile)                                          \
  if (before) _tile_stored(tile, before + (tile)*TILE_SUMS, 64); \
  if (from)                                                      \
    _tile_stream_loadd(tile, from + (tile)*TILE_SUMS, 64);       \
  else                                                           \
    _tile_zero(tile)
  load_step(a, a_row, b, both);
  TAKE_TURN(0);
  _tile_dpbf16ps(0, 4, 6);
  TAKE_TURN(1);
  _tile_dpbf16ps(1, 4, 7);
  if (!both) return;
  TAKE_TURN(2);
  _tile_dpbf16ps(2, 5, 6);
  TAKE_TURN(3);
  _tile_dpbf16ps(3, 5, 7);
#undef TAKE_TURN
}

// Work that overlaps with the multiplications of the tile unit: sums of the previous panel of B are written to C, and
// the lines of C for this panel and the data for the next packing are prefetched.
typedef struct beside {
  tarn__tiles_columns columns;
  int64_t row_bytes;   // between rows of C
  const float *sums;   // of the previous panel
  char *c;             // its columns of the first row
  int64_t row, rows;   // the next row, and their number
  int64_t share;       // rows per step
  const char *coming;  // line of C of this panel to prefetch next
  int64_t coming_rows;
} beside;

static beside beside_of(const tarn__tiles_finish *f) {
  return (beside){.row_bytes = f ? f->ldc * (f->c_dtype == TARN__BF16 ? 2 : 4) : 0};
}

// From now on the sums of columns from `column` on are written to C.
ALWAYS_INLINE void take_panel(beside *s, const tarn__tiles_block *g, const float *sums, int64_t column,
                              tarn__tiles_result form) {
  s->sums = sums;
  s->c = (char *)g->finish->c + column * (form == TARN__TILES_NARROW || form == TARN__TILES_NARROW_ADDED ? 2 : 4);
  s->row = 0;
  s->rows = g->rows;
  s->columns = tarn__tiles_columns_of(g->finish, column, g->columns);
}

ALWAYS_INLINE void finish_row(const beside *s, const float *sums, char *c, tarn__tiles_result form) {
  tarn__tiles_finish_row(&s->columns, _mm512_load_ps(sums), _mm512_load_ps(sums + TILE_SUMS), c, form);
}

// At most `count` rows of the previous panel, in the order of tiles [rows / 16][columns / 16][16][16].
ALWAYS_INLINE void finish_rows(beside *s, int64_t count, tarn__tiles_result form) {
  const int64_t end = s->row + count < s->rows ? s->row + count : s->rows;
  for (; s->row < end; s->row++)
    finish_row(s, s->sums + s->row / 16 * 2 * TILE_SUMS + s->row % 16 * 16, s->c + s->row * s->row_bytes, form);
}

ALWAYS_INLINE void fetch(tarn__tiles_ahead *ahead) {
  for (int64_t i = 0; i < ahead->lines; i++) {
    _mm_prefetch(ahead->at, _MM_HINT_T1);
    ahead->at += 64;
    if (ahead->at < ahead->end) continue;
    ahead->end += ahead->stride;
    ahead->at = ahead->end - ahead->width;
  }
}

ALWAYS_INLINE void do_beside(beside *s, const tarn__tiles_block *g, tarn__tiles_result form) {
  if (form != TARN__TILES_NOTHING) {
    finish_rows(s, s->share, form);
    for (int64_t i = 0; i < s->share && s->coming_rows > 0; i++, s->coming_rows--, s->coming += s->row_bytes) {
      _mm_prefetch(s->coming, _MM_HINT_T1);
      if (form == TARN__TILES_WIDE || form == TARN__TILES_WIDE_ADDED) _mm_prefetch(s->coming + 64, _MM_HINT_T1);
    }
  }
  if (g->ahead[0]) fetch(g->ahead[0]);
  if (g->ahead[1]) fetch(g->ahead[1]);
}

ALWAYS_INLINE void multiply_rows(const tarn__tiles_block *g, tarn__tiles_result form, bool both) {
  _Alignas(64) float complete[TARN__TILES_SUMS];
  beside s = beside_of(g->finish);
  // The first step of a panel starts with the previous panel's results still in the tiles.
  s.share = g->steps > 1 ? (g->rows + g->steps - 2) / (g->steps - 1) : 0;
  float *before = NULL;
  for (int64_t panel = 0; panel * PANEL < g->columns; panel++) {
    const char *a = g->a, *b = (const char *)g->b + panel * g->b_stride;
    float *sums = g->sums + panel * TARN__TILES_SUMS;
    if (form != TARN__TILES_NOTHING) finish_rows(&s, s.rows, form);
    first_step(a, g->a_row, b, both, before, g->add ? sums : NULL);
    if (form != TARN__TILES_NOTHING) {
      if (before) take_panel(&s, g, complete, (panel - 1) * PANEL, form);
      s.coming = (const char *)g->finish->c +
                 panel * PANEL * (form == TARN__TILES_NARROW || form == TARN__TILES_NARROW_ADDED ? 2 : 4);
      s.coming_rows = g->rows;
    }
    for (int64_t n = 1; n < g->steps; n++) {
      do_beside(&s, g, form);
      step(a + n * g->a_step, g->a_row, b + n * STEP, both);
    }
    before = form != TARN__TILES_NOTHING ? complete : sums;
  }
  if (!before) return;
  if (form != TARN__TILES_NOTHING) finish_rows(&s, s.rows, form);
  store_sums(before, both);
  if (form == TARN__TILES_NOTHING) return;
  take_panel(&s, g, complete, (g->columns - 1) / PANEL * PANEL, form);
  finish_rows(&s, s.rows, form);
}

ALWAYS_INLINE void multiply(const tarn__tiles_block *g, tarn__tiles_result form) {
  if (g->rows > ROWS)
    multiply_rows(g, form, true);
  else
    multiply_rows(g, form, false);
}

void tarn__tiles_multiply(const tarn__tiles_block *block) {
  tarn__amx_written();
  switch (tarn__tiles_result_of(block->finish)) {
    case TARN__TILES_NOTHING:
      multiply(block, TARN__TILES_NOTHING);
      break;
    case TARN__TILES_NARROW:
      multiply(block, TARN__TILES_NARROW);
      break;
    case TARN__TILES_NARROW_ADDED:
      multiply(block, TARN__TILES_NARROW_ADDED);
      break;
    case TARN__TILES_WIDE:
      multiply(block, TARN__TILES_WIDE);
      break;
    case TARN__TILES_WIDE_ADDED:
      multiply(block, TARN__TILES_WIDE_ADDED);
      break;
  }
}

// --- packing

// Loads a 128-bit piece from each of four addresses, one per lane.
ALWAYS_INLINE __m512i gather4(const uint16_t *a, const uint16_t *b, const uint16_t *c, const uint16_t *d) {
  __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)a));
  v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)b), 1);
  v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)c), 2);
  return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)d), 3);
}

// A whole step of contiguous rows of A.
ALWAYS_INLINE void a_along(char *out, const uint16_t *from, int64_t ld) {
  for (int r = 0; r < PANEL; r++) _mm512_store_si512(out + 64 * r, _mm512_loadu_si512(from + r * ld));
}

// Sums of the terms of strided rows of A: of rows 4 i to 4 i + 3 in each lane of vector i, for the terms of that lane.
typedef struct row_sums {
  __m512 of[PANEL / 4];
} row_sums;

// Products with ones round once a term, as additions would.
ALWAYS_INLINE __m512 add_pairs(__m512 sum, __m512i pairs) {
  return _mm512_dpbf16_ps(sum, (__m512bh)pairs, (__m512bh)_mm512_set1_epi16(0x3F80));
}

// Strided rows of A. Lane l of eight vectors holds terms 8 l to 8 l + 7 of eight rows; transposing within the lanes
// gives these rows. Half way, pairs of terms of a row lie side by side.
ALWAYS_INLINE void a_across(char *out, const uint16_t *from, int64_t ld, row_sums *sums) {
  for (int eight = 0; eight < PANEL; eight += 8, from += 8, out += 8 * 64) {
    __m512i v[8], w[8];
    for (int i = 0; i < 8; i++)
      v[i] = gather4(from + i * ld, from + (8 + i) * ld, from + (16 + i) * ld, from + (24 + i) * ld);
    for (int i = 0; i < 8; i += 2) {
      w[i] = _mm512_unpacklo_epi16(v[i], v[i + 1]);
      w[i + 1] = _mm512_unpackhi_epi16(v[i], v[i + 1]);
      if (!sums) continue;
      sums->of[eight / 4] = add_pairs(sums->of[eight / 4], w[i]);
      sums->of[eight / 4 + 1] = add_pairs(sums->of[eight / 4 + 1], w[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      v[i] = _mm512_unpacklo_epi32(w[i], w[i + 2]);
      v[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 2]);
      v[i + 2] = _mm512_unpacklo_epi32(w[i + 1], w[i + 3]);
      v[i + 3] = _mm512_unpackhi_epi32(w[i + 1], w[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
      _mm512_store_si512(out + 64 * (2 * i), _mm512_unpacklo_epi64(v[i], v[i + 4]));
      _mm512_store_si512(out + 64 * (2 * i + 1), _mm512_unpackhi_epi64(v[i], v[i + 4]));
    }
  }
}

// Contiguous columns of B: lane l of four vectors holds four pairs of columns 4 l to 4 l + 3.
ALWAYS_INLINE void b_along(char *out, const uint16_t *from, int64_t ld) {
  for (int tile = 0; tile < 2; tile++, from += 16 * ld)
    for (int four = 0; four < 4; four++, out += 4 * 64) {
      __m512i v[4], w[4];
      for (int i = 0; i < 4; i++) {
        const uint16_t *at = from + i * ld + 8 * four;
        v[i] = gather4(at, at + 4 * ld, at + 8 * ld, at + 12 * ld);
      }
      w[0] = _mm512_unpacklo_epi32(v[0], v[1]);
      w[1] = _mm512_unpackhi_epi32(v[0], v[1]);
      w[2] = _mm512_unpacklo_epi32(v[2], v[3]);
      w[3] = _mm512_unpackhi_epi32(v[2], v[3]);
      _mm512_store_si512(out, _mm512_unpacklo_epi64(w[0], w[2]));
      _mm512_store_si512(out + 64, _mm512_unpackhi_epi64(w[0], w[2]));
      _mm512_store_si512(out + 128, _mm512_unpacklo_epi64(w[1], w[3]));
      _mm512_store_si512(out + 192, _mm512_unpackhi_epi64(w[1], w[3]));
    }
}

// Strided columns of B: the lanes of two terms are permuted so that pairs of neighbours unpack in order.
ALWAYS_INLINE void b_across(char *out, const uint16_t *from, int64_t ld) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (int pair = 0; pair < 16; pair++, from += 2 * ld, out += 64) {
    // The next step's lines are too far apart for the hardware prefetcher.
    _mm_prefetch((const char *)(from + TARN__TILES_TERMS * ld), _MM_HINT_T1);
    _mm_prefetch((const char *)(from + (TARN__TILES_TERMS + 1) * ld), _MM_HINT_T1);
    const __m512i first = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(from));
    const __m512i second = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(from + ld));
    _mm512_store_si512(out, _mm512_unpacklo_epi16(first, second));
    _mm512_store_si512(out + TILE, _mm512_unpackhi_epi16(first, second));
  }
}

ALWAYS_INLINE void pack_step(char *out, const uint16_t *from, int64_t ld, bool is_b, bool across, row_sums *sums) {
  if (is_b)
    across ? b_across(out, from, ld) : b_along(out, from, ld);
  else
    across ? a_across(out, from, ld, sums) : a_along(out, from, ld);
}

// An incomplete step, by a copy padded with zeros.
static void pack_partly(char *out, const uint16_t *from, const tarn__tiles_lines *l, int64_t terms, row_sums *sums) {
  _Alignas(64) uint16_t whole[PANEL * TARN__TILES_TERMS] = {0};
  const int64_t rows = l->across ? terms : l->lines, columns = l->across ? l->lines : terms;
  for (int64_t r = 0; r < rows; r++) memcpy(whole + r * 32, from + r * l->ld, (size_t)columns * sizeof *from);
  pack_step(out, whole, 32, l->is_b, l->across, sums);
}

ALWAYS_INLINE void pack_steps(char *out, const tarn__tiles_lines *l, bool is_b, bool across, row_sums *sums) {
  const uint16_t *from = l->from;
  const int64_t next = TARN__TILES_TERMS * (across ? l->ld : 1);
  int64_t left = l->terms;
  if (l->lines == PANEL)
    for (; left >= TARN__TILES_TERMS; left -= TARN__TILES_TERMS, from += next, out += STEP)
      pack_step(out, from, l->ld, is_b, across, sums);
  for (; left > 0; left -= TARN__TILES_TERMS, from += next, out += STEP)
    pack_partly(out, from, l, left < TARN__TILES_TERMS ? left : TARN__TILES_TERMS, sums);
}

// Packs strided rows of A and adds their sums to l->sums.
static void pack_and_sum(char *out, const tarn__tiles_lines *l) {
  row_sums sums;
  for (int i = 0; i < PANEL / 4; i++) sums.of[i] = _mm512_setzero_ps();
  pack_steps(out, l, false, true, &sums);
  _Alignas(64) float total[PANEL];
  for (int i = 0; i < PANEL / 4; i++) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(sums.of[i]), _mm512_extractf32x8_ps(sums.of[i], 1));
    _mm_store_ps(total + 4 * i, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
  }
  for (int64_t i = 0; i < l->lines; i++) l->sums[i] += total[i];
}

void tarn__tiles_pack(void *out, const tarn__tiles_lines *l) {
  if (l->sums)
    pack_and_sum(out, l);
  else if (l->is_b)
    l->across ? pack_steps(out, l, true, true, NULL) : pack_steps(out, l, true, false, NULL);
  else
    l->across ? pack_steps(out, l, false, true, NULL) : pack_steps(out, l, false, false, NULL);
}
